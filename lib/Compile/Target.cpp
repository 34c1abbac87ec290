//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Compile/Target.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"

using namespace mlir;
using namespace mlir::plateau::compile;

llvm::Expected<Target> Target::create(bool isNative) {
  static const bool isInitialized = !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
  if (!isInitialized)
    return llvm::createStringError("this build of LLVM has no code generator for this machine");
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  if (triple.getArch() != llvm::Triple::x86_64)
    return llvm::createStringError("this machine is a " + triple.getArchName() + "; the runtime is for x86-64");
  std::string message;
  const llvm::Target *registered = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!registered)
    return llvm::createStringError(message);

  std::string cpu = "x86-64";
  llvm::SubtargetFeatures features;
  SmallVector<StringRef> enabled;
  llvm::StringMap<bool> host = isNative ? llvm::sys::getHostCPUFeatures() : llvm::StringMap<bool>();
  if (isNative)
    cpu = llvm::sys::getHostCPUName().str();
  for (const auto &feature : host) {
    features.AddFeature(feature.getKey(), feature.getValue());
    if (feature.getValue())
      enabled.push_back(feature.getKey());
  }
  llvm::sort(enabled); // The map's order is not fixed.
  Target target;
  target.features = llvm::join(enabled, ",");
  target.machine.reset(registered->createTargetMachine(triple, cpu, features.getString(), llvm::TargetOptions(),
                                                       llvm::Reloc::PIC_, std::nullopt,
                                                       llvm::CodeGenOptLevel::Default));
  if (!target.machine)
    return llvm::createStringError("LLVM makes no code for the processor " + cpu);
  return target;
}

llvm::Expected<SmallVector<char, 0>> Target::emitObject(llvm::Module &module) const {
  SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("LLVM writes no object files for this machine");
  passes.run(module);
  return bytes;
}
