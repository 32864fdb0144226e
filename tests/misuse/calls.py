"""Lists right calls of all public functions. generate.py derives mistakes from the kinds of the parameters.

Each row is a right call. To add a row for a new public function:

    row("clamp", "tensor w.x", "number 2.", "number 4.", right=[2, 2, 3, 4, 4, 4])

The row has the name, "KIND VALUE" for each parameter, and the numbers of the result, computed here or by hand. Kinds are in rules.py. Values
are C++, and `w.` is a member of World in world.hpp. right="error" and right="compiler" mark calls that are themselves a mistake.
call="w.window.begin_micro_batch" gives the call if it is not NAME(...); each $ in it is replaced by one argument. With all=False the row
does not have all parameters, so an additional argument is not a mistake. title= distinguishes rows of the same name. EXCEPT lists mistakes
that a rule does not cover, with the reason, and LEFT_OUT lists names without a row.
"""
import math

ROWS = []


class row:
    def __init__(self, name, *parameters, right=None, call=None, all=True, title=None):
        self.name, self.right, self.call, self.all, self.title = name, right, call, all, title or name
        self.parameters = [next((kind, each[len(kind) + 1:]) for kind in KINDS if each.startswith(kind + " ")) for each in parameters]
        if any(other.title == self.title for other in ROWS):
            raise ValueError(f"two rows have the title {self.title}: write title=")
        ROWS.append(self)


KINDS = ["tensor", "operand", "tensors", "parameters", "array", "labels", "axis", "along", "count", "size", "position", "probability", "rate", "limit",
         "eps", "options", "shape", "path", "name", "number", "bound", "parts", "fixed"]
X, Y, U = [1, 2, 3, 4, 5, 6], [1, 1, 2, 2, 4, 4], [.1, .2, .3, .4, .5, .6]
ROWS_OF_X = [X[:3], X[3:]]


def each_row(f):
    return [v for line in ROWS_OF_X for v in f(line)]


def softmax(line):
    return [math.exp(v) / sum(map(math.exp, line)) for v in line]


def logsumexp(line):
    return math.log(sum(map(math.exp, line)))


# ---- elementwise ----

ELEMENTWISE = {
    "exp": math.exp, "log": math.log, "log1p": math.log1p, "expm1": math.expm1, "sqrt": math.sqrt, "tanh": math.tanh, "sin": math.sin,
    "cos": math.cos, "abs": abs, "sigmoid": lambda v: 1 / (1 + math.exp(-v)), "softplus": lambda v: math.log1p(math.exp(v)),
    "silu": lambda v: v / (1 + math.exp(-v)), "relu": lambda v: max(v, 0), "gelu": lambda v: v * (1 + math.erf(v / math.sqrt(2))) / 2,
}
for name, formula in ELEMENTWISE.items():
    row(name, "tensor w.x", right=[formula(v) for v in X])
TWO = {"pow": lambda a, b: a ** b, "maximum": max, "minimum": min}
for name, formula in TWO.items():
    row(name, "tensor w.x", "tensor w.y", right=[formula(a, b) for a, b in zip(X, Y)])
for sign, formula in {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b}.items():
    row(f"operator{sign}", "tensor w.x", "tensor w.y", call=f"$ {sign} $", right=[formula(a, b) for a, b in zip(X, Y)])
    row(f"operator{sign}", "tensor w.x", "number 2.", call=f"$ {sign} $", right=[formula(a, 2) for a in X], title=f"operator{sign} of a number")
row("pow", "tensor w.x", "number 2.", right=[v * v for v in X], title="pow of a number")
row("pow", "number 2.", "tensor w.x", right=[2 ** v for v in X], title="pow of a number to a tensor")
for name, formula in {"maximum": max, "minimum": min}.items():
    row(name, "tensor w.x", "number 2.", right=[formula(v, 2) for v in X], title=f"{name} of a number")
row("clamp", "tensor w.x", "number 2.", "number 4.", right=[2, 2, 3, 4, 4, 4])
row("where", "fixed w.mask", "operand w.x", "operand w.y", right=[1, 1, 3, 2, 5, 4])

# ---- reductions ----

row("sum", "tensor w.x", "along 1", "options {.keepdims = true}", right=[6, 15])
row("mean", "tensor w.x", "along 1", "options {.keepdims = true}", right=[2, 5])
row("max", "tensor w.x", "along 1", "options {.keepdims = true}", right=[3, 6])
row("logsumexp", "tensor w.x", "along 1", "options {.keepdims = true}", right=[logsumexp(line) for line in ROWS_OF_X])
row("var", "tensor w.x", "along 1", "options {.unbiased = true}", right=[1, 1])
row("prod", "tensor w.x", "along 1", "options {.keepdims = true}", right=[6, 120])
row("cumsum", "tensor w.x", "axis 1", right=[1, 3, 6, 4, 9, 15])
row("argmax", "operand w.x", "axis 1", "options {.keepdims = true}", right=[2, 2])
row("softmax", "tensor w.x", "axis 1", right=each_row(softmax))
row("log_softmax", "tensor w.x", "axis 1", right=each_row(lambda line: [v - logsumexp(line) for v in line]))

# ---- shapes ----

row("reshape", "tensor w.x", "fixed {3, -1}", right=X)
row("squeeze", "tensor w.one", "along 0", right=[3])
row("unsqueeze", "tensor w.x", "axis 2", right=X)
row("permute", "tensor w.x", "fixed {1, 0}", right=[1, 4, 2, 5, 3, 6])
row("transpose", "tensor w.x", "position 0", "axis 1", right=[1, 4, 2, 5, 3, 6])
row("broadcast_to", "tensor w.x", "shape Shape({2, 2, 3})", right=X + X)
row("slice", "tensor w.x", "axis 1", "position 0", "position 2", right=[1, 2, 4, 5])
row("at", "operand w.x", "position 1", right=[4, 5, 6])
row("concat", "tensors list(w.x, w.y)", "axis 1", right=[1, 2, 3, 1, 1, 2, 4, 5, 6, 2, 4, 4])
row("stack", "tensors list(w.x, w.y)", "axis 2", right=[v for pair in zip(X, Y) for v in pair])
row("split", "tensor w.x", "count 1", right=X)
row("split", "tensor w.x", "fixed w.sizes", right=X, title="split in sizes")
row("split", "fixed w.items", "count 3", right=[0, 1, 2, 3], title="split of items")
row("rows", "operand w.x", "fixed w.labels.reshaped({2}).slice_rows(0, 1)", right=[1, 2, 3])
row("rows", "array w.array", "fixed Items(0, 1)", right=[1, 2, 3], title="rows of an array")

# ---- products, layers, losses ----

row("matmul", "tensor w.x", "tensor w.w32", "options {.transpose_a = false}", right=[4, 5, 10, 11])
row("linear", "tensor w.x", "tensor w.w32", "tensor w.bias2", right=[4, 6, 10, 12])
row("linear_relu", "tensor w.x", "tensor w.w32", "tensor w.bias2", right=[4, 6, 10, 12])
row("conv2d", "tensor w.image", "tensor w.kernel", "operand w.bias1", "count 1", "size 0", right=[11])
row("max_pool2d", "tensor w.image", "count 2", "count 1", right=[4])
row("embedding", "operand w.x", "fixed w.labels.slice_rows(0, 1)", "position 0", right=[1, 2, 3])
row("layer_norm", "tensor w.x", "tensor w.gain3", "tensor w.bias3", "eps 1e-5", right=[v * math.sqrt(1.5) for v in (-1, 0, 1)] * 2)
row("batch_norm", "tensor w.x", "tensor w.gain3", "tensor w.bias3", "eps 1e-5", right=[-1] * 3 + [1] * 3)
row("batch_norm", "tensor w.x", "tensor w.gain3", "tensor w.bias3", "fixed w.running", "eps 1e-5", right=[v / math.sqrt(1 + 1e-5) for v in X], title="batch_norm in evaluation")
row("dropout", "operand w.x", "probability 0.", "fixed detail::DropoutKey{.seed = 1}", right=X)
row("Loss", "tensor w.x", right=[21, 6])
row("mse", "tensor w.x", "tensor w.y", right=[sum((a - b) ** 2 for a, b in zip(X, Y)), 6])
row("binary_cross_entropy", "tensor w.u", "operand w.u", right=[-sum(p * math.log(p) + (1 - p) * math.log(1 - p) for p in U), 6])
row("cross_entropy", "tensor w.x", "labels w.labels", "options {.smoothing = 0}", right=[2 * logsumexp([1, 2, 3]) - 1 - 3, 2])
row("info_nce", "tensor w.square", "tensor w.square", "rate 1.", right=[logsumexp([5, 11]) - 5 + logsumexp([11, 25]) - 25, 2])

# ---- graphs ----

row("parameter", "fixed w.array", right=X)
row("constant", "fixed w.array", right=X)
row("Var::detach", "operand w.x", call="$.detach()", right=X)
row("grad", "operand sum(w.x * w.x)", "tensors list(w.x)", right=[2 * v for v in X])
row("sgd_step", "parameters list(w.z)", "rate 0.1")
row("checkpoint", "fixed [](Tensor t) { return t * 2; }", "tensor w.x", right=[2 * v for v in X], all=False)
row("checkpoint_sequential", "fixed w.chain", "count 1", "tensor w.x", right=[2 * v + 1 for v in X])
row("gradcheck", "fixed [](const std::vector<Tensor64>& t) { return sum(t[0] * t[0]); }", "fixed {w.array64}", "options {.step = 1e-6}", right=[1])
row("hessian_vector", "fixed [](const auto& t) { return sum(t * t); }", "fixed w.array64", "fixed w.direction64", right=[2, 0])
row("Node::live_count", right=None)
row("Var::item", "tensor w.one", call="$.item()", right=[3])
row("Var::shape", "operand w.x", call="$.shape()", right=[2, 3])
row("Var::operator[]", "operand w.x", "position 1", call="$[$]", right=[4, 5, 6])
row("Var::t", "tensor w.x", call="$.t()", right=[1, 4, 2, 5, 3, 6])
row("Var::grad", "fixed w.y", call="$.grad()", right=[2 * v for v in Y])
row("Var::backward", "operand w.one", call="$.backward()")
row("Shape::operator[]", "fixed w.x.shape()", "position 1", call="$[$]", right=[3])

# ---- factories ----

row("full", "shape Shape({2})", "number 3.", "options {.seed = 1}", right=[3, 3])
row("zeros", "shape Shape({2})", "options {.seed = 1}", right=[0, 0])
row("ones", "shape Shape({2})", "options {.seed = 1}", right=[1, 1])
row("arange", "size 3", "options {.seed = 1}", right=[0, 1, 2])
row("eye", "size 2", "options {.seed = 1}", right=[1, 0, 0, 1])
row("randn", "shape Shape({2})", "options {.seed = 1}")
row("uniform", "shape Shape({2})", "bound 0.", "bound 1.", "options {.seed = 1}")
row("Array::slice_rows", "array w.array", "position 0", "position 1", call="$.slice_rows($, $)", right=[1, 2, 3])
row("Array::reshaped", "array w.array", "shape Shape({3, 2})", call="$.reshaped($)", right=X)
row("Array::item", "array w.one.value()", call="$.item()", right=[3])
row("Array::to_vector", "array w.array", call="$.to_vector()", right=X)
row("Array::clone", "array w.array", call="$.clone()", right=X)
row("BatchStatistics::pooled_with", "fixed w.batch", call="w.batch.pooled_with", right=[1, 2, 3, 1, 1, 1, 8])
row("RunningStatistics::commit", "fixed w.batch", "probability 0.1", call="w.running.commit")

# ---- training ----

row("Items::in_order", "size 3", right=[0, 1, 2])
row("Items::shuffled", "size 1", "fixed 7", "size 0", right=[0])
row("Items", "size 1", "size 3", right=[1, 2])
row("clip_grad_norm", "tensors list(w.y)", "limit 1.", right=[math.sqrt(sum(4 * v * v for v in Y))], all=False)
row("clip_grad_value", "tensors list(w.y)", "limit 1.")
row("Sgd", "parameters list(w.z)", "options {.learning_rate = 0.1}", call="Sgd<float>")
row("Adam", "parameters list(w.z)", "options {.learning_rate = 0.1}", call="Adam<float>")
row("AdamW", "parameters list(w.z)", "options {.learning_rate = 0.1}", call="AdamW<float>")
for optimizer in ["Sgd", "Adam", "AdamW"]:
    row(optimizer, "rate 0.1", call=optimizer + "<float>({w.z}, {.learning_rate = $})", title=f"{optimizer} learning_rate")
    row(optimizer, "rate 0.1", call=optimizer + "<float>({w.z}, {.weight_decay = $})", title=f"{optimizer} weight_decay")
row("Sgd", "probability 0.5", call="Sgd<float>({w.z}, {.momentum = $})", title="Sgd momentum")
row("Adam", "probability 0.5", call="Adam<float>({w.z}, {.beta1 = $})", title="Adam beta1")
row("Adam", "eps 1e-8", call="Adam<float>({w.z}, {.eps = $})", title="Adam eps")
row("Optimizer::set_learning_rate", "rate 0.1", call="w.optimizer.set_learning_rate")
row("MovingAverage", "parameters list(w.z)", "options {.decay = 0.5}", call="MovingAverage<float>")
row("MovingAverage", "probability 0.5", call="MovingAverage<float>({w.z}, {.decay = $})", title="MovingAverage decay")
row("MovingAverage::value", "position 0", call="w.average.value", right=Y)
row("Trainer::AccumulationSteps", "count 4", call="Trainer<float>::AccumulationSteps($).at(0)", right=[4])
row("Schedule::constant", "rate 0.1", call="Schedule::constant($).at(5)", right=[0.1])
row("Schedule::step", "rate 1.", "count 2", "rate 0.5", call="Schedule::step($, $, $).at(4)", right=[0.25])
row("Schedule::cosine", "rate 1.", "count 2", "limit 0.", call="Schedule::cosine($, $, $).at(1)", right=[0.5])
row("Schedule::warm_up", "count 2", "fixed w.schedule", "number 0.5", call="Schedule::warm_up")
row("Schedule::at", "size 3", call="w.schedule.at", right=[0.1])
row("Schedule", "fixed Schedule::Function()", right="error", title="Schedule of no function")
row("Schedule", "fixed [](std::int64_t) { return 0.5; }", call="Schedule($).at(1)", right=[0.5])
row("Window::add", "fixed w.loss", "options {.weight = 2}", call="w.window.add")
row("Window::add", "rate 1.", call="w.window.add(w.loss, {.weight = $})", title="Window::add weight")
row("Window::add_regularizer", "operand sum(w.z)", call="(w.window.add(w.loss), w.window.add_regularizer($), w.window.finish())", right=[1, 6])
row("Window::begin_micro_batch", "size 4", call="w.window.begin_micro_batch($).first_item", right=[0])
row("Window::plan_micro_batches", "size 4", call="w.window.plan_micro_batches")
row("Window", "limit 1.", call="Window<float>(w.optimizer, {.max_norm = $})", title="Window max_norm")
row("Window", "limit 1.", call="Window<float>(w.optimizer, {.max_value = $})", title="Window max_value")
row("Window", "size 1", call="Window<float>(w.optimizer, {.micro_batches = $})", title="Window micro_batches")
row("Window", "limit 1.", call="Window<float>(w.optimizer, {.total = $})", title="Window total")
row("MicroBatchSize", "count 4", "fixed 0", call="MicroBatchSize($, $).now()", right=[4])

# ---- models and files ----

row("Linear", "size 3", "size 2", "fixed {.seed = 1}", "options {.bias = true}", call="Linear<float>")
row("LayerNorm", "size 3", "eps 1e-5", call="LayerNorm<float>($, $)(w.x)", right=[v * math.sqrt(1.5) for v in (-1, 0, 1)] * 2)
row("BatchNorm", "size 3", "eps 1e-5", "probability 0.1", call="BatchNorm<float>($, $, $)(w.x, w.training)", right=[-1] * 3 + [1] * 3)
row("Dropout", "probability 0.5", "fixed 3", call="Dropout<float>")
row("Embedding", "size 3", "size 2", "fixed {.seed = 1}", call="Embedding<float>", all=False)
row("Embedding", "position 0", call="Embedding<float>(3, 2, {.seed = 1}, $)", title="Embedding padding")
row("SelfAttention", "count 4", "count 2", "fixed {.seed = 1}", "options {.causal = true}", call="SelfAttention<float>")
row("MaxPool2d", "count 2", "count 1", call="MaxPool2d<float>($, $)(w.image)", right=[4])
row("Sequential::layer", "position 0", call="&w.model.layer($)")
row("Linear::operator()", "tensor w.x", call="w.linear($)")
row("Dropout::operator()", "operand w.x", call="w.dropout($)", right=X)
row("Module::parameters", call="w.model.parameters()")
row("Module::named_parameters", call="w.model.named_parameters()")
row("Var::assign", "operand w.z", "array w.array", call="$.assign($)")
row("Module::to", "fixed Device::cpu", call="w.model.to")
row("Module::save_weights", "path w.file", call="w.model.save_weights")
row("Module::load_weights", "path w.file", call="w.model.save_weights(w.file), w.model.load_weights")
row("save_npy", "path w.file", "fixed w.array")
row("load_npy", "path w.file", call="save_npy(w.file, w.array), load_npy<float>($)", right=X)
row("TrainingState::save", "path w.file", call="w.state.save")
row("TrainingState::load", "path w.file", call="w.state.save(w.file), TrainingState::load($)")
row("Idx::load", "path \"none\"", right="error")
row("set_threads", "count 1")
row("memory::in_use", "fixed Device::cpu")
row("memory::peak", "fixed Device::cpu")
row("to_string", "fixed A({2}, {1, 2})", "fixed 1", right=[ord(letter) for letter in "[1.0 2.0]"])

# ---- temporaries, and calls that look like other calls ----

row("Var::value", call="[&] { const auto& y = (w.x * 2).value(); const Tensor other = w.x * 7; return y.clone(); }()", right=[2 * v for v in X],
    title="Var::value of a temporary")
row("Var::shape", call="[&] { const auto& y = (w.x * 2).shape(); const Tensor other = at(w.x * 7, 0); return Shape(y); }()", right=[2, 3],
    title="Var::shape of a temporary")
row("Array::shape", call="[&] { const auto& y = w.array.clone().shape(); const A other = w.one.value().clone(); return Shape(y); }()", right=[2, 3],
    title="Array::shape of a temporary")
row("Array::span", call="w.array.clone().span()", right="compiler", title="Array::span of a temporary")
row("Array::data", call="w.array.clone().data()", right="compiler", title="Array::data of a temporary")
row("Array::writable", call="w.array.clone().writable()", right="compiler", title="Array::writable of a temporary")
row("rows", call="rows(w.array, {0, 1})", right="compiler", title="rows of an array by braces")
row("cross_entropy", call="cross_entropy(w.x, w.labels, -100, 0.1)", right="compiler", title="cross_entropy by position")
row("Window::add", call="w.window.add(w.loss, w.items.count())", right="compiler", title="Window::add of a count")
row("Optimizer::step", call="(w.average.update(), w.average.swap(), w.optimizer.step())", right="error", title="Optimizer::step while averages are swapped in")

# ---- functions that programs seldom call ----

row("custom", "tensor w.x", right=X,
    call='custom("mine", [](const A& p) { return p.clone(); }, [](GradInputs<A> to, const A& dy, const A&, const A&) { to.add(0, dy); }, $)')
row("custom", right="error", title="custom that returns no array",
    call='custom("mine", [](const A&) { return A(); }, [](GradInputs<A> to, const A& dy, const A&, const A&) { to.add(0, dy); }, w.x) * 2')
row("Var::modify_value", right="error", call="w.z.modify_value([](A& v) { const A out = std::move(v); })", title="Var::modify_value that moves the array away")
row("Revolve", "count 1", call="Revolve<A>(w.chain, $)(w.x)", right=[2 * v + 1 for v in X])
row("even_segments", "fixed 4", "count 2", right=[2, 2])
row("fit_into", "fixed w.chain", "operand w.x", "fixed 1000000")
row("add_cached", "parts split(w.items, 4)", right=None,
    call="add_cached<float>(w.window, $, {[&](const Items&, ForwardPass&) { return w.z * 1; }}, [](const auto& r) { return Loss(r[0]); })")
row("Trainer::evaluate", "count 4", "count 2", "fixed [](const Items& i, ForwardPass&) { return Loss(ones({i.count()})); }", call="Trainer<float>::evaluate", right=[1])
row("Conv2d", "count 1", "size 1", "count 2", "fixed {.seed = 1}", "options {.bias = true}", call="Conv2d<float>($, $, $, $, $)(w.image)")
row("Conv2d", "count 1", call="Conv2d<float>(1, 1, 2, {.seed = 1}, {.stride = $})(w.image)", title="Conv2d stride")
row("Conv2d", "size 0", call="Conv2d<float>(1, 1, 2, {.seed = 1}, {.padding = $})(w.image)", title="Conv2d padding")
row("Picture", "operand sum(w.x)")
row("memory::report", "fixed Device::cpu")
row("memory::Report::to_string", "fixed memory::report()", call="to_string")
row("memory::set_budget", "fixed 1000000", "fixed Device::cpu", right="error")  # while arrays exist
row("memory::reset_peak", "fixed Device::cpu")
row("memory::drop_cache", "fixed Device::cpu")
row("uniform", right="error", call="uniform({2}, 1, -1)", title="uniform between exchanged bounds")
row("set_products", "fixed Products::ordered")
row("products", right=[0], call="static_cast<int>(products())")
row("threads", call="threads() > 0", right=[1])
row("available", "fixed Device::cpu", right=[1])

# ---- defaults: as in PyTorch's documentation ----

STEPPED = "[&] { Tensor p = parameter({1.f}); sum(p * %s).backward(); %s<float> o({p}, {.learning_rate = 0.1}); o.step(); return p; }()"
for title, call, numbers in [
    ("AdamW", STEPPED % ("0", "AdamW"), [0.999]),
    ("Adam", STEPPED % ("0", "Adam"), [1]),
    ("Sgd", STEPPED % ("2", "Sgd"), [0.8]),
    ("cross_entropy", "cross_entropy(w.x, I({2}, {-100, 0}))", [logsumexp([4, 5, 6]) - 4, 1]),
    ("info_nce", "info_nce(w.square, w.square)", [logsumexp([5, 11]) - 5 + logsumexp([11, 25]) - 25, 2]),
    ("var", "var(w.x, 1)", [1, 1]),
    ("sum", "sum(w.x)", [21]),
    ("softmax", "softmax(w.x)", each_row(softmax)),
    ("log_softmax", "log_softmax(w.x)", each_row(lambda line: [v - logsumexp(line) for v in line])),
    ("transpose", "transpose(w.x)", [1, 4, 2, 5, 3, 6]),
    ("concat", "concat(list(w.x, w.y))", X + Y),
    ("stack", "stack(list(w.x, w.y)).shape()", [2, 2, 3]),
    ("conv2d", "conv2d(w.image, w.kernel)", [10]),
    ("max_pool2d", "max_pool2d(w.image, 1)", [1, 2, 3, 4]),
    ("uniform", "uniform({0})", []),
    ("Schedule::step", "Schedule::step(1, 2).at(2)", [0.1]),
    ("Schedule::cosine", "Schedule::cosine(1, 2).at(2)", [0]),
    ("MovingAverage", "[&] { MovingAverage<float> a({w.z}); a.update(); return a.value(0); }()", Y),
    ("BatchNorm", "[&] { BatchNorm<float> b(3); return b.eps(); }()", [1e-5]),
    ("LayerNorm", "LayerNorm<float>(3)(w.x)", [v * math.sqrt(1.5) for v in (-1, 0, 1)] * 2),
]:
    row(title, call=call, right=numbers, title=f"{title} by default")

# Maps (row, mistake) to the outcome that replaces the rule's outcome, and to the reason.
EXCEPT = {
    ("checkpoint", "a tensor of double"): ("program", "the function is called within checkpoint(), where the compiler finds it"),
    ("custom", "a tensor of double"): ("program", "the functions are called within custom(), where the compiler finds it"),
    ("pow", "NaN"): ("settled", "1 to any power is 1, as in C and in PyTorch"),
    ("max_pool2d", "zero"): ("settled", "a stride of 0 is the size of the window"),
    ("MaxPool2d", "zero"): ("settled", "a stride of 0 is the size of the window"),
    ("Revolve", "negative"): ("settled", "a std::size_t: more snapshots than steps keep all of them"),
    ("grad", "no tensors"): ("settled", "no tensors have no gradients"),
    ("sgd_step", "no parameters"): ("settled", "no parameter is changed"),
    ("Sgd momentum", "percent for a fraction"): ("settled", "as in PyTorch, momentum must only not be negative"),
}

# Maps each public function without a row to the reason. (A type, whose name begins with a capital letter, has the rows of its constructors.)
LEFT_OUT = {}
for reason, names in {
    "for custom operations, whose arguments the compiler checks: tests/autograd": "save save_if record accumulate_into add_scaled",
    "its arguments are functions of the user: tested by its own tests": """
        add_with_exact_batch_norm cached_backward is_recomputing""",
    "xtensor's expressions: tests/xtensor and tests/train/does_not_compile.py": "array_of as_writable_xtensor as_xtensor",
    "prints anything": "operator<<",
}.items():
    LEFT_OUT.update({name: reason for name in names.split()})
