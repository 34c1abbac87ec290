//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Runs a program that was compiled ahead of time, its ranks as threads of this process, on buffers that are read from
// raw files and written to them. Linked with the object file of plateau-compile and the runtime (docs/compile.md).
//===----------------------------------------------------------------------===//

#include "plateau/program.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// What the object file exports: plateau_<function>.
#ifndef PLATEAU_PROGRAM
#define PLATEAU_PROGRAM plateau_step
#endif
extern "C" const plr_program PLATEAU_PROGRAM;
static const plr_program &program = PLATEAU_PROGRAM;

namespace {

/// What is wrong with the command line, for exit code 2; anything else is 1.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A buffer and the files of the ranks; {rank} in the name stands for the number.
struct NamedFile {
  int64_t number;
  std::string path;

  std::string getPath(int rank) const {
    std::string result = path;
    if (size_t at = result.find("{rank}"); at != std::string::npos)
      result.replace(at, 6, std::to_string(rank));
    return result;
  }
};

struct Options {
  int64_t steps = 1;
  double timeoutSeconds = 60;
  bool lists = false;
  std::vector<NamedFile> reads, writes;
  std::vector<int64_t> prints;
};

/// What a buffer holds before each step, or before the first when there is one part.
struct Input {
  void *target;
  std::vector<char> bytes;
  int64_t partBytes;
};

/// One rank of the run.
struct Rank {
  plr_context *context = nullptr;
  std::vector<void *> buffers;
  std::vector<Input> inputs;

  Rank() = default;
  Rank(Rank &&other) : context(other.context), buffers(std::move(other.buffers)), inputs(std::move(other.inputs)) {
    other.context = nullptr;
  }
  ~Rank() { plr_context_destroy(context); }

  std::string getError() const {
    const char *message = "";
    return plr_context_error(context, &message) == PLR_OK ? "" : message;
  }
};

struct Transport {
  plr_transport *transport = nullptr;
  ~Transport() { plr_transport_destroy(transport); }
};

} // namespace

static int64_t findBuffer(const std::string &name) {
  int64_t number = plr_program_find(&program, name.c_str());
  if (number < 0)
    throw UsageError("there is no buffer '" + name + "'; --list names them");
  return number;
}

static NamedFile parseNamedFile(const std::string &text) {
  size_t at = text.find('=');
  if (at == std::string::npos)
    throw UsageError("'" + text + "' is not NAME=FILE");
  return {findBuffer(text.substr(0, at)), text.substr(at + 1)};
}

static Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--list") {
      options.lists = true;
      continue;
    }
    if (i + 1 == argc)
      throw UsageError("'" + name + "' is no option, or has no value");
    std::string value = argv[++i];
    char *end = nullptr;
    if (name == "--steps") {
      options.steps = std::strtoll(value.c_str(), &end, 10);
      if (value.empty() || *end || options.steps < 0)
        throw UsageError("--steps: '" + value + "' is no integer of at least 0");
    } else if (name == "--timeout") {
      options.timeoutSeconds = std::strtod(value.c_str(), &end);
      if (value.empty() || *end || !(options.timeoutSeconds > 0))
        throw UsageError("--timeout: '" + value + "' is no positive number");
    } else if (name == "--read") {
      options.reads.push_back(parseNamedFile(value));
    } else if (name == "--write") {
      options.writes.push_back(parseNamedFile(value));
      if (program.ranks > 1 && value.find("{rank}") == std::string::npos)
        throw UsageError("--write: the " + std::to_string(program.ranks) + " ranks would all write '" +
                         options.writes.back().path + "'; put {rank} into its name");
    } else if (name == "--print") {
      options.prints.push_back(findBuffer(value));
      if (program.buffers[options.prints.back()].bytes < 4)
        throw UsageError("--print: '" + value + "' holds no number of 32 bits");
    } else {
      throw UsageError("'" + name + "' is no option");
    }
  }
  return options;
}

static void list() {
  for (int64_t number = 0; number < program.buffer_count; ++number)
    std::printf("%s: %lld bytes\n", program.buffers[number].tag.op,
                static_cast<long long>(program.buffers[number].bytes));
}

static Input readInput(const NamedFile &file, int rank, void *target, int64_t steps) {
  std::string path = file.getPath(rank);
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw std::runtime_error(path + ": cannot be read");
  Input input = {target, {std::istreambuf_iterator<char>(stream), {}}, program.buffers[file.number].bytes};
  auto size = static_cast<int64_t>(input.bytes.size());
  if (size != input.partBytes && size != input.partBytes * steps)
    throw std::runtime_error(path + ": has " + std::to_string(size) + " bytes; '" +
                             program.buffers[file.number].tag.op + "' takes " + std::to_string(input.partBytes) +
                             ", or as many for each of the " + std::to_string(steps) + " steps");
  return input;
}

static Rank createRank(int rank, const Options &options, plr_transport *transport) {
  plr_config config = {};
  config.abi_version = PLR_ABI_VERSION;
  config.rank = rank;
  config.ranks = program.ranks;
  config.device_bytes = plr_program_bytes(&program, PLR_DEVICE);
  config.host_bytes = plr_program_bytes(&program, PLR_HOST);
  config.gemm = program.gemm;
  config.transport = transport;
  Rank result;
  char message[512] = "";
  if (plr_context_create(&config, &result.context, message, sizeof message) != PLR_OK)
    throw std::runtime_error(message);
  result.buffers.resize(program.buffer_count);
  if (plr_program_create(result.context, &program, result.buffers.data()) != PLR_OK)
    throw std::runtime_error(result.getError());
  for (const NamedFile &file : options.reads)
    result.inputs.push_back(readInput(file, rank, result.buffers[file.number], options.steps));
  return result;
}

/// All steps of a rank; the first failure ends them.
static void runSteps(Rank &rank, const Options &options, bool isFirst) {
  for (int64_t step = 0; step < options.steps; ++step) {
    for (const Input &input : rank.inputs) {
      bool isWhole = static_cast<int64_t>(input.bytes.size()) == input.partBytes;
      if (!isWhole || step == 0)
        std::memcpy(input.target, input.bytes.data() + (isWhole ? 0 : step * input.partBytes), input.partBytes);
    }
    if (plr_program_run(rank.context, &program, rank.buffers.data()) != PLR_OK)
      return;
    if (isFirst)
      for (int64_t number : options.prints) {
        float value;
        std::memcpy(&value, rank.buffers[number], sizeof value);
        std::printf("step %lld: %s = %.9g\n", static_cast<long long>(step + 1), program.buffers[number].tag.op, value);
      }
  }
}

static void run(const Options &options) {
  Transport transport; // Outlives the ranks.
  char message[512] = "";
  if (program.ranks > 1 && plr_transport_create_threads(program.ranks, options.timeoutSeconds, &transport.transport,
                                                        message, sizeof message) != PLR_OK)
    throw std::runtime_error(message);
  std::vector<Rank> ranks;
  for (int rank = 0; rank < program.ranks; ++rank)
    ranks.push_back(createRank(rank, options, transport.transport));
  std::vector<std::thread> threads;
  for (size_t rank = 1; rank < ranks.size(); ++rank)
    threads.emplace_back(runSteps, std::ref(ranks[rank]), std::cref(options), false);
  runSteps(ranks[0], options, true);
  for (std::thread &thread : threads)
    thread.join();
  for (const Rank &rank : ranks)
    if (std::string error = rank.getError(); !error.empty())
      throw std::runtime_error(error);
  for (const NamedFile &file : options.writes)
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      std::string path = file.getPath(static_cast<int>(rank));
      std::ofstream stream(path, std::ios::binary);
      stream.write(static_cast<const char *>(ranks[rank].buffers[file.number]), program.buffers[file.number].bytes);
      if (!stream.flush())
        throw std::runtime_error(path + ": cannot be written");
    }
}

int main(int argc, char **argv) {
  try {
    Options options = parse(argc, argv);
    if (options.lists)
      list();
    else
      run(options);
    return std::fflush(stdout) == 0 ? 0 : 1;
  } catch (const UsageError &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    std::fprintf(stderr,
                 "usage: %s [--list] [--steps N] [--read NAME=FILE]... [--write NAME=FILE]... [--print NAME]... "
                 "[--timeout SECONDS]\n",
                 argv[0]);
    return 2;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
