#include "analyze/attribute/tensorflow/imported.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace vramscope::analyze::tensorflow {
namespace {

using trace::Category;

// "ReluGrad_12" -> "ReluGrad": TensorFlow numbers repeated names.
std::string_view without_number(std::string_view type) {
  const std::size_t end = type.find_last_not_of("0123456789") + 1;
  return end > 1 && end < type.size() && type[end - 1] == '_' ? type.substr(0, end - 1) : type;
}

bool is_one_of(std::string_view type, std::span<const std::string_view> names) {
  return std::ranges::find(names, type) != names.end();
}

}  // namespace

ImportedNames::ImportedNames(const trace::Dictionaries& dictionaries) {
  for (const trace::Site& site : dictionaries.sites) ops_.insert(text_of(dictionaries, site.op));
}

Category ImportedNames::category(std::string_view op) const {
  constexpr std::string_view kOfWeights[] = {"BiasAddGrad", "Conv2DBackpropFilter", "Conv3DBackpropFilterV2",
                                             "DepthwiseConv2dNativeBackpropFilter"};
  constexpr std::string_view kHandedOn[] = {"Conv2DBackpropInput",
                                            "Conv3DBackpropInputV2",
                                            "DepthwiseConv2dNativeBackpropInput",
                                            "ReluGrad",
                                            "Relu6Grad",
                                            "EluGrad",
                                            "SeluGrad",
                                            "TanhGrad",
                                            "SigmoidGrad",
                                            "MaxPoolGrad",
                                            "AvgPoolGrad"};
  const std::string_view type = op.substr(op.rfind('/') + 1), bare = without_number(type);
  if (op.contains("/Initializer/")) return Category::optimizer_state;
  // A loss has no weights.
  if (is_one_of(bare, kHandedOn) || op.contains("/compile_loss/")) return Category::activation_gradient;
  if (is_one_of(bare, kOfWeights)) return Category::gradient;
  // The gradient of a product has two parts, that of the second factor (the weights) last. Where only one is needed, it has the
  // name of the first, whichever it is.
  constexpr std::string_view kSecond = "/MatMul/MatMul_1", kFirst = "/MatMul/MatMul";
  if (op.ends_with(kSecond)) return Category::gradient;
  if (op.ends_with(kFirst) && ops_.contains(std::string(op) + "_1")) return Category::activation_gradient;
  return Category::unknown;
}

}  // namespace vramscope::analyze::tensorflow
