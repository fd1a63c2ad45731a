//===- Blocks.cpp - the building blocks as text ---------------------------===//
#include "Blocks.h"
#include "llvm/ADT/STLExtras.h"

using namespace gptc::cuda;
using llvm::StringRef;

static void add(StringRef name, llvm::StringSet<> &done, std::string &text) {
  if (!done.insert(name).second)
    return;
  const Block *block = llvm::find_if(
      allBlocks(), [&](const Block &each) { return each.name == name; });
  std::string own;
  for (StringRef rest = block->text; !rest.empty();) {
    auto [line, after] = rest.split('\n');
    rest = after;
    if (line == "#pragma once")
      continue;
    StringRef included = line;
    if (included.consume_front("#include \"") &&
        included.consume_back(".cuh\""))
      add(included, done, text);
    else
      own += line.str() + '\n';
  }
  text += '\n' + own;
}

std::string gptc::cuda::blockText(const llvm::StringSet<> &names) {
  llvm::StringSet<> done;
  std::string text;
  for (const Block &block : allBlocks())
    if (names.contains(block.name))
      add(block.name, done, text);
  return text;
}
