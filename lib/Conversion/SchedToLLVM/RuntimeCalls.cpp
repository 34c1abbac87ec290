//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeCalls.h"
#include "mlir/IR/Builders.h"
#include "plateau/runtime.h"

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

Value RuntimeCalls::null(Location loc) { return LLVM::ZeroOp::create(builder, loc, getPointerType()); }

LLVM::GlobalOp RuntimeCalls::addGlobal(Location loc, Type type, StringRef prefix, Attribute value) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  std::string name = (prefix + "_" + Twine(globals++)).str();
  return LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Private, name, value);
}

Value RuntimeCalls::global(Location loc, LLVM::GlobalOp global) {
  return LLVM::AddressOfOp::create(builder, loc, global);
}

Value RuntimeCalls::tag(Location loc, sched::TagAttr attr) {
  LLVM::GlobalOp &tag = tags[attr];
  if (!tag) {
    LLVM::GlobalOp &string = strings[attr.getOp()];
    if (!string) {
      std::string text = attr.getOp().str() + '\0';
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
    int64_t numbers[] = {attr.getLayer().value_or(-1), static_cast<int64_t>(attr.getComponent()),
                         static_cast<int64_t>(attr.getPhase())};
    for (int64_t field = 0; field < 3; ++field)
      value = LLVM::InsertValueOp::create(builder, loc, value, i32(loc, numbers[field]), ArrayRef<int64_t>{field + 1});
    LLVM::ReturnOp::create(builder, loc, value);
  }
  return global(loc, tag);
}

Value RuntimeCalls::structure(Location loc, ArrayAttr fields) {
  LLVM::GlobalOp &known = structures[fields];
  if (!known) {
    auto typed = llvm::map_to_vector(fields, [](Attribute field) { return cast<TypedAttr>(field); });
    auto type = LLVM::LLVMStructType::getLiteral(
        builder.getContext(), llvm::map_to_vector(typed, [](TypedAttr field) { return field.getType(); }));
    known = addGlobal(loc, type, "struct", {});
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&known.getInitializerRegion());
    Value value = LLVM::UndefOp::create(builder, loc, type);
    for (auto [index, field] : llvm::enumerate(typed)) {
      Value number = LLVM::ConstantOp::create(builder, loc, field.getType(), field);
      value = LLVM::InsertValueOp::create(builder, loc, value, number, ArrayRef<int64_t>{static_cast<int64_t>(index)});
    }
    LLVM::ReturnOp::create(builder, loc, value);
  }
  return global(loc, known);
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
