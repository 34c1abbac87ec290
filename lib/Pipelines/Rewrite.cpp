//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Pipelines/Rewrite.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;
using namespace mlir::plateau;

/// The first line of what the parser says, without its own name, place and copy of the text.
static std::string getReason(StringRef text) {
  StringRef line = text.split('\n').first;
  size_t start = line.find("error: ");
  return (start == StringRef::npos ? line : line.drop_front(start + strlen("error: "))).trim().str();
}

static llvm::Error parse(StringRef pipeline, OpPassManager &manager) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (pipeline.trim().empty())
    return llvm::createStringError("a pipeline of no passes");
  if (succeeded(parsePassPipeline(pipeline, manager, os)))
    return llvm::Error::success();
  return llvm::createStringError("'" + pipeline + "': " + getReason(text));
}

llvm::Error mlir::plateau::checkRewrite(StringRef pipeline) {
  OpPassManager manager(ModuleOp::getOperationName());
  return parse(pipeline, manager);
}

std::string mlir::plateau::addVerifiers(StringRef pipeline) {
  std::string text;
  int braces = 0; // Options stand in braces.
  auto endElement = [&] {
    // What ends in a parenthesis is a nested pipeline, whose passes have theirs.
    if (StringRef before = StringRef(text).rtrim(); !before.empty() && !before.ends_with(")"))
      text += ",moe-verify-spaces";
  };
  for (char c : pipeline) {
    braces += (c == '{') - (c == '}');
    if (braces == 0 && (c == ',' || c == ')'))
      endElement();
    text += c;
  }
  endElement();
  return text;
}

llvm::Expected<RewrittenFunction> mlir::plateau::rewriteFunction(func::FuncOp function, StringRef pipeline) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(function.getLoc());
  func::FuncOp copy = function.clone();
  copy.setPublic();
  module->push_back(copy);
  for (auto grid : function->getParentOfType<ModuleOp>().getOps<shard::GridOp>())
    module->push_back(grid.clone());
  PassManager manager(function.getContext());
  if (llvm::Error error = checkRewrite(pipeline))
    return error;
  if (llvm::Error error = parse(addVerifiers(pipeline), manager))
    return error;
  if (failed(manager.run(*module)))
    return llvm::createStringError("");
  auto changed = module->lookupSymbol<func::FuncOp>(function.getNameAttr());
  if (!changed || changed.getFunctionType() != function.getFunctionType() ||
      changed.getArgAttrsAttr() != function.getArgAttrsAttr() ||
      changed.getResAttrsAttr() != function.getResAttrsAttr())
    return llvm::createStringError("--rewrite '" + pipeline + "': @" + function.getName() +
                                   " is no function on the same tensors after it: it must be made of passes that "
                                   "rewrite the body of a function");
  return RewrittenFunction{std::move(module), changed};
}
