//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Compile/Compile.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::compile;

FailureOr<CompiledProgram> compile::schedule(func::FuncOp function, const ScheduleOptions &options) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
  func::FuncOp copy = function.clone();
  copy.setPublic();
  module->push_back(copy);
  for (auto grid : function->getParentOfType<ModuleOp>().getOps<shard::GridOp>())
    module->push_back(grid.clone());
  PassManager manager(function.getContext());
  buildSchedulePipeline(manager, options);
  if (failed(manager.run(*module)))
    return failure();
  sched::ProgramOp program = *module->getOps<sched::ProgramOp>().begin();
  plr_gemm_kind gemm = options.referenceGemm ? PLR_GEMM_REFERENCE : PLR_GEMM_ONEDNN;
  return CompiledProgram{std::move(module), ProgramDescriptor::get(function, program, gemm)};
}

llvm::Expected<std::unique_ptr<llvm::Module>> compile::lower(CompiledProgram program, llvm::LLVMContext &context,
                                                             const Target &target) {
  MLIRContext *mlirContext = program.module->getContext();
  PassManager manager(mlirContext);
  buildLowerSchedulePipeline(manager);
  if (failed(manager.run(*program.module)))
    return llvm::createStringError("");
  // No symbol but the descriptor's: the function may have the name of one of the libraries.
  constexpr StringRef entryName = "plateau_entry";
  SymbolTable::setSymbolName(SymbolTable::lookupSymbolIn(*program.module, program.descriptor.function), entryName);

  registerBuiltinDialectTranslation(*mlirContext);
  registerLLVMDialectTranslation(*mlirContext);
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(*program.module, context);
  if (!module)
    return llvm::createStringError("");
  module->setTargetTriple(target.machine->getTargetTriple());
  module->setDataLayout(target.machine->createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  for (llvm::Function &function : *module)
    if (!function.isDeclaration())
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  program.descriptor.addTo(*module, module->getFunction(entryName), target);
  auto optimize = makeOptimizingTransformer(/*optLevel=*/2, /*sizeLevel=*/0, target.machine.get());
  if (llvm::Error error = optimize(module.get()))
    return std::move(error);
  return module;
}
