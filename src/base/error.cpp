// Joins the parts of an error message.
#include "tally/base/error.hpp"

namespace tally::detail {

std::string error_message(std::string_view call, std::initializer_list<MessagePart> parts) {
    std::string message = "[";
    message.append(call).append("] ");
    for (const MessagePart& part : parts) message.append(part.text());
    return message;
}

}  // namespace tally::detail
