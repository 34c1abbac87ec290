//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Compile/ProgramDescriptor.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include <cstddef>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::compile;

// Written below field by field.
static_assert(sizeof(plr_tag) == 24 && offsetof(plr_tag, layer) == 8 && offsetof(plr_tag, component) == 12 &&
              offsetof(plr_tag, phase) == 16);
static_assert(sizeof(plr_program_buffer) == 48 && offsetof(plr_program_buffer, bytes) == 24 &&
              offsetof(plr_program_buffer, space) == 32 && offsetof(plr_program_buffer, is_result) == 36 &&
              offsetof(plr_program_buffer, donor) == 40);
static_assert(sizeof(plr_program) == 72 && offsetof(plr_program, ranks) == 4 && offsetof(plr_program, gemm) == 8 &&
              offsetof(plr_program, cpu) == 16 && offsetof(plr_program, features) == 24 &&
              offsetof(plr_program, arena_bytes) == 32 && offsetof(plr_program, buffer_count) == 48 &&
              offsetof(plr_program, buffers) == 56 && offsetof(plr_program, entry) == 64 && PLR_SPACES == 2);

/// A result in the memory of the argument `donor`.
static ProgramDescriptor::Buffer makeDonated(func::FuncOp function, unsigned result, int64_t donor,
                                             ProgramDescriptor::Buffer buffer) {
  constexpr StringRef argument = "argument ";
  StringRef name = StringRef(buffer.name).drop_front(argument.size());
  auto role = function.getResultAttrOfType<moe::RoleAttr>(result, "moe.role");
  buffer.name = ("result " + (role                    ? moe::stringifyRole(role.getValue()).str()
                              : name.starts_with("#") ? "#" + std::to_string(result)
                                                      : name.str()));
  buffer.isResult = true;
  buffer.donor = donor;
  return buffer;
}

ProgramDescriptor ProgramDescriptor::get(func::FuncOp function, sched::ProgramOp program, plr_gemm_kind gemm) {
  ProgramDescriptor descriptor;
  descriptor.function = function.getName().str();
  descriptor.ranks = program.getRanks();
  descriptor.gemm = gemm;
  for (auto arena : program.getBody().getOps<sched::ArenaOp>())
    descriptor.arenaBytes[static_cast<int64_t>(arena.getSpace())] = arena.getBytes().value_or(0);
  unsigned arguments = function.getNumArguments();
  descriptor.buffers.resize(arguments + function.getNumResults());
  for (auto op : program.getBody().getOps<sched::BufferOp>()) {
    auto type = cast<MemRefType>(op.getResult().getType());
    int64_t bytes = type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
    sched::TagAttr tag = op.getTag();
    descriptor.buffers[op.getNumber()] = {tag.getOp().str(),
                                          bytes,
                                          static_cast<plr_component>(tag.getComponent()),
                                          static_cast<plr_space>(op.getSpace()),
                                          static_cast<unsigned>(op.getNumber()) >= arguments,
                                          /*donor=*/-1};
  }
  for (unsigned argument = 0; argument < arguments; ++argument)
    if (auto result = function.getArgAttrOfType<IntegerAttr>(argument, "moe.donated"))
      descriptor.buffers[arguments + result.getInt()] =
          makeDonated(function, result.getInt(), argument, descriptor.buffers[argument]);
  return descriptor;
}

void ProgramDescriptor::addTo(llvm::Module &module, llvm::Function *entry, const Target &target) const {
  llvm::IRBuilder<> builder(module.getContext());
  auto i32 = [&](int64_t value) -> llvm::Constant * { return builder.getInt32(value); };
  auto i64 = [&](int64_t value) -> llvm::Constant * { return builder.getInt64(value); };
  auto text = [&](StringRef value) -> llvm::Constant * {
    return builder.CreateGlobalString(value, "", /*AddressSpace=*/0, &module);
  };
  auto structure = [](ArrayRef<llvm::Constant *> fields) { return llvm::ConstantStruct::getAnon(fields); };

  SmallVector<llvm::Constant *> elements;
  for (const Buffer &buffer : buffers)
    elements.push_back(structure({structure({text(buffer.name), i32(-1), i32(buffer.component), i32(PLR_FORWARD)}),
                                  i64(buffer.bytes), i32(buffer.space), i32(buffer.isResult), i64(buffer.donor)}));
  llvm::Constant *list = llvm::ConstantPointerNull::get(builder.getPtrTy());
  if (!elements.empty()) {
    auto *array =
        llvm::ConstantArray::get(llvm::ArrayType::get(elements.front()->getType(), elements.size()), elements);
    list = new llvm::GlobalVariable(module, array->getType(), /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
                                    array, "buffers");
  }
  auto *arenas = llvm::ConstantArray::get(llvm::ArrayType::get(builder.getInt64Ty(), PLR_SPACES),
                                          {i64(arenaBytes[PLR_DEVICE]), i64(arenaBytes[PLR_HOST])});
  llvm::Constant *program =
      structure({i32(PLR_ABI_VERSION), i32(ranks), i32(gemm), i32(0), text(target.machine->getTargetCPU()),
                 text(target.features), arenas, i64(buffers.size()), list, entry});
  new llvm::GlobalVariable(module, program->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, program,
                           "plateau_" + function);
}
