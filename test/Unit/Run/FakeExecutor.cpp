//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "FakeExecutor.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

std::string run::getStepText(bool isBF16, int ranks, int tokens, int sequence) {
  std::string ids = llvm::formatv("tensor<{0}xi32>", tokens).str();
  std::string group = isBF16 ? "tensor<16xbf16>" : "tensor<16xf32>";
  auto state = [](llvm::StringRef role, int donated) {
    return llvm::formatv("{{moe.role = #moe.role<{0}>, moe.layout = #layout, moe.donated = {1} : i64}", role, donated)
        .str();
  };
  std::string text = R"(
#layout = #moe.layout<[<<"model.embed_tokens.weight", decay = true, mean = 0.0 : f64, deviation = 0.5 : f64>, offset = 0, shape = [5, 2]>,
                       <<"norm", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>, offset = 10, shape = [3]>]>
)";
  text += llvm::formatv(
      "func.func @step(%tokens: {0} {{moe.role = #moe.role<tokens>}, %labels: {0} {{moe.role = "
      "#moe.role<labels>}, %positions: {0} {{moe.role = #moe.role<positions>}, %starts: {0} {{moe.role = "
      "#moe.role<starts>}, %lr: tensor<f32> {{moe.role = #moe.role<learning_rate>}, %t: tensor<i32> "
      "{{moe.role = #moe.role<step>}, %p: {1} {2}, %g: {1} {3}, %m: tensor<16xf32> {4}, %v: tensor<16xf32> {5}",
      ids, group, state("parameters", 2), state("gradients", 3), state("first_moment", 4), state("second_moment", 5));
  if (isBF16)
    text += ", %w: tensor<16xf32> " + state("master", 6);
  text += llvm::formatv(
      ") -> (tensor<f32> {{moe.role = #moe.role<loss>}, tensor<f32> {{moe.role = #moe.role<gradient_norm>}, "
      "{0} {{moe.role = #moe.role<parameters>}, {0} {{moe.role = #moe.role<gradients>}, tensor<16xf32> "
      "{{moe.role = #moe.role<first_moment>}, tensor<16xf32> {{moe.role = #moe.role<second_moment>}",
      group);
  if (isBF16)
    text += ", tensor<16xf32> {moe.role = #moe.role<master>}";
  text += llvm::formatv(") attributes {{moe.batch = #moe.batch<ranks = {0}, tokens = {1}, sequence = {2}>} {{\n", ranks,
                        tokens, sequence);
  text += "  return %lr, %lr, %p, %g, %m, %v";
  text += isBF16 ? ", %w" : "";
  text += llvm::formatv(" : tensor<f32>, tensor<f32>, {0}, {0}, tensor<16xf32>, tensor<16xf32>{1}\n}\n", group,
                        isBF16 ? ", tensor<16xf32>" : "");
  return text;
}

DialectRegistry &RunTest::getRegistry() {
  static DialectRegistry registry = [] {
    DialectRegistry made;
    made.insert<arith::ArithDialect, func::FuncDialect, tensor::TensorDialect>();
    registerAllDialects(made);
    return made;
  }();
  return registry;
}

RunTest::RunTest()
    : context(getRegistry(), MLIRContext::Threading::DISABLED), handler(&context, [this](Diagnostic &diagnostic) {
        diagnostics += diagnostic.str() + "\n";
        for (Diagnostic &note : diagnostic.getNotes())
          diagnostics += "note: " + note.str() + "\n";
        return success();
      }) {
  llvm::SmallString<128> path;
  llvm::sys::fs::createUniqueDirectory("plateau-run-test", path);
  folder = path.str().str();
}

RunTest::~RunTest() { llvm::sys::fs::remove_directories(folder); }

OwningOpRef<ModuleOp> RunTest::parse(llvm::StringRef text) {
  auto module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << diagnostics;
  return module;
}

std::string RunTest::writeFile(llvm::StringRef name, llvm::StringRef contents) const {
  std::error_code code;
  llvm::raw_fd_ostream os(getPath(name), code);
  os << contents;
  return getPath(name);
}

std::string RunTest::writeIds(llvm::StringRef name, const std::vector<uint32_t> &ids) const {
  return writeFile(name, {reinterpret_cast<const char *>(ids.data()), ids.size() * sizeof(uint32_t)});
}

std::string RunTest::readFile(llvm::StringRef name) const {
  auto file = llvm::MemoryBuffer::getFile(getPath(name));
  EXPECT_TRUE(static_cast<bool>(file)) << name.str();
  return file ? (*file)->getBuffer().str() : "";
}

std::vector<std::string> RunTest::listFiles() const {
  std::vector<std::string> names;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder, code), end; it != end && !code; it.increment(code))
    names.push_back(llvm::sys::path::filename(it->path()).str());
  llvm::sort(names);
  return names;
}
