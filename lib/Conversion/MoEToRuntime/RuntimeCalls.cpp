

#include "RuntimeCalls.h"
#include "mlir/IR/Builders.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "plateau/runtime.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::plateau;

static_assert(static_cast<int>(Component::Parameters) == PLR_PARAMETERS &&
                  static_cast<int>(Component::Embedding) == PLR_EMBEDDING &&
                  static_cast<int>(Component::Routing) == PLR_ROUTING &&
                  static_cast<int>(Component::Vocabulary) == PLR_VOCABULARY &&
                  static_cast<int>(Component::Workspace) == PLR_WORKSPACE &&
                  static_cast<int>(Component::External) + 1 == PLR_COMPONENTS,
              "the compiler's components are the runtime's");
static_assert(static_cast<int>(Phase::Forward) == PLR_FORWARD && static_cast<int>(Phase::Backward) == PLR_BACKWARD &&
                  static_cast<int>(Phase::Optimizer) == PLR_OPTIMIZER_PHASE,
              "the compiler's phases are the runtime's");

Value RuntimeCalls::i32(Location loc, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), builder.getI32IntegerAttr(value));
}

Value RuntimeCalls::i64(Location loc, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), builder.getI64IntegerAttr(value));
}

Value RuntimeCalls::f32(Location loc, float value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getF32Type(), builder.getF32FloatAttr(value));
}

Value RuntimeCalls::f64(Location loc, double value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getF64Type(), builder.getF64FloatAttr(value));
}

Value RuntimeCalls::null(Location loc) { return LLVM::ZeroOp::create(builder, loc, getPointerType()); }

Value RuntimeCalls::type(Location loc, Type tensor) {
  return i32(loc, getElementTypeOrSelf(tensor).isBF16() ? PLR_BF16 : PLR_F32);
}

LLVM::GlobalOp RuntimeCalls::addGlobal(Location loc, Type type, StringRef prefix, Attribute value) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  std::string name = (prefix + "_" + Twine(globals++)).str();
  return LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Private, name, value);
}

Value RuntimeCalls::global(Location loc, LLVM::GlobalOp global) {
  return LLVM::AddressOfOp::create(builder, loc, global);
}

Value RuntimeCalls::tag(Operation *op, bool isWorkspace) {
  Location loc = op->getLoc();
  moe::ScopeAttr scope = moe::getScope(loc);
  Component component = Component::Dense;
  if (auto footprint = dyn_cast<FootprintOpInterface>(op))
    component = footprint.getDefaultComponent();
  Phase phase = Phase::Forward;
  int64_t layer = -1;
  if (scope) {
    component = scope.getComponent();
    phase = scope.getPhase();
    layer = scope.getLayer().value_or(-1);
  }
  if (isWorkspace)
    component = Component::Workspace;

  std::string name =
      op->getName().getStringRef() == "linalg.generic" ? "elementwise" : op->getName().getStringRef().str();
  StringRef place = moe::getLocationName(loc);
  if (!place.empty())
    name += (" " + place).str();

  int64_t numbers[] = {layer, static_cast<int64_t>(component), static_cast<int64_t>(phase)};
  std::string key = name + "|" + llvm::join(llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }), "|");
  LLVM::GlobalOp &tag = tags[key];
  if (!tag) {
    LLVM::GlobalOp &string = strings[name];
    if (!string) {
      std::string text = name + '\0';
      string = addGlobal(loc, LLVM::LLVMArrayType::get(builder.getI8Type(), text.size()), "op_name",
                         builder.getStringAttr(text));
    }
    auto structType = LLVM::LLVMStructType::getLiteral(
        builder.getContext(), {getPointerType(), builder.getI32Type(), builder.getI32Type(), builder.getI32Type()});
    tag = addGlobal(loc, structType, "tag", {});
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&tag.getInitializerRegion());
    Value value = LLVM::UndefOp::create(builder, loc, structType);
    value = LLVM::InsertValueOp::create(builder, loc, value, global(loc, string), ArrayRef<int64_t>{0});
    for (int64_t field = 0; field < 3; ++field)
      value = LLVM::InsertValueOp::create(builder, loc, value, i32(loc, numbers[field]), ArrayRef<int64_t>{field + 1});
    LLVM::ReturnOp::create(builder, loc, value);
  }
  return global(loc, tag);
}

Value RuntimeCalls::array(Location loc, ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get(static_cast<int64_t>(values.size()), builder.getI64Type());
  return data(loc, DenseElementsAttr::get(type, values));
}

Value RuntimeCalls::data(Location loc, DenseElementsAttr values) {
  auto type = LLVM::LLVMArrayType::get(values.getElementType(), values.getNumElements());
  auto flat = values.reshape(RankedTensorType::get({values.getNumElements()}, values.getElementType()));
  return global(loc, addGlobal(loc, type, "data", flat));
}

LLVM::LLVMFuncOp RuntimeCalls::declare(StringRef name, Type result, TypeRange arguments) {
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  return LLVM::LLVMFuncOp::create(builder, module.getLoc(), name,
                                  LLVM::LLVMFunctionType::get(result, llvm::to_vector(arguments)));
}

Value RuntimeCalls::call(Location loc, StringRef name, ValueRange arguments, Type result) {
  if (!result)
    result = builder.getI32Type();
  return LLVM::CallOp::create(builder, loc, declare(name, result, arguments.getTypes()), arguments).getResult();
}

void RuntimeCalls::callVoid(Location loc, StringRef name, ValueRange arguments) {
  Type none = LLVM::LLVMVoidType::get(builder.getContext());
  LLVM::CallOp::create(builder, loc, declare(name, none, arguments.getTypes()), arguments);
}

Value RuntimeCalls::offset(Location loc, Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(builder, loc, getPointerType(), builder.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{i64(loc, bytes)});
}
