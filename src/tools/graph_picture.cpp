// Assigns lanes to the graphs of a `Picture`, and writes the picture to a file.
#include "tally/tools/graph_picture.hpp"

#include "tally/base/error.hpp"
#include "tally/base/write_file.hpp"

namespace tally {

detail::Diagram Picture::finished() const {
    detail::Diagram done = diagram_;
    detail::lanes_from_losses(done);
    return done;
}

void Picture::write(const std::string& path) const {
    const bool svg_wanted = path.ends_with(".svg");
    if (!svg_wanted && !path.ends_with(".dot"))
        throw Error("picture", "cannot write '", path, "'; use a name that ends in .svg or .dot");
    write_file_atomically(path, svg_wanted ? svg() : dot());
}

}  // namespace tally
