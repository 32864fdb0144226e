// Collects the nodes of a `Picture`, chooses its lanes and labels, and writes it to a file.
#include "tally/tools/graph_picture.hpp"

#include "tally/base/error.hpp"
#include "tally/base/write_file.hpp"

namespace tally {

std::map<std::uint64_t, Node*> Picture::behind(Node* root) {
    std::map<std::uint64_t, Node*> nodes;
    std::vector<Node*> todo{root};
    while (!todo.empty()) {
        Node* node = todo.back();
        todo.pop_back();
        if (!nodes.emplace(node->id, node).second) continue;
        for (Node* input : node->inputs())
            if (input) todo.push_back(input);
    }
    return nodes;
}

void Picture::label(int user, int to, std::string gradient) {
    auto& inputs = diagram_.boxes[static_cast<std::size_t>(user)].inputs;
    detail::Diagram::Input* last = nullptr;
    for (auto& input : inputs)
        if (input.from == to) {
            if (last) gradient += gradient.ends_with(" together") ? "" : " together";
            last = &input;
            input.back = true;
        }
    last->gradient = std::move(gradient);
}

// A box shows its gradient. So only the arrows of a gradient with several parts have labels.
detail::Diagram Picture::finished() const {
    detail::Diagram done = diagram_;
    detail::lanes_from_losses(done);
    std::vector<int> parts(done.boxes.size());
    for (const auto& box : done.boxes)
        for (const auto& input : box.inputs)
            if (input.back) ++parts[static_cast<std::size_t>(input.from)];
    for (auto& box : done.boxes)
        for (auto& input : box.inputs) {
            const auto from = static_cast<std::size_t>(input.from);
            if (parts[from] == 1 && input.gradient == done.boxes[from].gradient) input.gradient.clear();
        }
    return done;
}

void Picture::write(const std::string& path) const {
    const bool svg_wanted = path.ends_with(".svg");
    if (!svg_wanted && !path.ends_with(".dot"))
        throw Error("picture", "cannot write '", path, "'; use a name that ends in .svg or .dot");
    write_file_atomically(path, svg_wanted ? svg() : dot());
}

}  // namespace tally
