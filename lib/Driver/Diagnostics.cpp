//===- Diagnostics.cpp - what a run says about its input ------------------===//
#include "Diagnostics.h"
#include "gptc/Dialect/Gpt/NearestName.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

using namespace gptc;
using llvm::StringRef;
using llvm::Twine;

// Of a line, on each side of the column.
static constexpr size_t shownBefore = 120, shownAfter = 120;
static constexpr size_t longestMessage = 800, longestFile = 400;

static bool continuesCharacter(char c) { return (c & 0xC0) == 0x80; }

/// The text without what moves the cursor of a terminal.
static std::string printable(StringRef text) {
  std::string shown = text.str();
  for (char &c : shown)
    if (c == '\t' || c == '\n')
      c = ' ';
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return shown;
}

/// Begin and end of what is too long, whole characters of it.
static std::string shortened(StringRef text, size_t limit) {
  if (text.size() <= limit)
    return printable(text);
  size_t head = limit / 2, tail = text.size() - limit / 2;
  while (head > 0 && continuesCharacter(text[head]))
    --head;
  while (tail < text.size() && continuesCharacter(text[tail]))
    ++tail;
  return printable(text.take_front(head)) + " ... " +
         printable(text.drop_front(tail));
}

/// The op that MLIR's parser does not know, from its message; empty if the
/// message is another one.
static StringRef unknownOp(StringRef message) {
  constexpr std::pair<StringRef, StringRef> around[] = {
      {"custom op '", "' is unknown"},
      {"unregistered operation '", "' found in"},
      {"not found for custom op '", "'"}};
  for (auto [before, after] : around) {
    size_t begin = message.find(before);
    if (begin == StringRef::npos)
      continue;
    StringRef rest = message.drop_front(begin + before.size());
    if (size_t end = rest.find(after); end != StringRef::npos)
      return rest.take_front(end);
  }
  return "";
}

/// "; did you mean 'x'?", or nothing.
static std::string didYouMean(StringRef message, mlir::MLIRContext *context) {
  std::string name = unknownOp(message).str();
  if (name.empty())
    return "";
  if (!StringRef(name).contains('.'))
    name = "gpt." + name;
  std::vector<StringRef> known;
  for (mlir::RegisteredOperationName op : context->getRegisteredOperations())
    known.push_back(op.getStringRef());
  StringRef nearest = nearestName(name, known);
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}

/// MLIR's message without its advice on options that gptc has not.
static StringRef withoutAdvice(StringRef message) {
  message = message.split(". If this is intended").first;
  return message.split("; for more info on dialect registration").first;
}

static StringRef severityName(mlir::DiagnosticSeverity severity) {
  switch (severity) {
  case mlir::DiagnosticSeverity::Note:
    return "note";
  case mlir::DiagnosticSeverity::Warning:
    return "warning";
  case mlir::DiagnosticSeverity::Error:
    return "error";
  case mlir::DiagnosticSeverity::Remark:
    return "remark";
  }
  return "error";
}

/// The line around the column and a caret below it; nothing if the place is not
/// in the model.
std::string Diagnostics::shownLine(StringRef file, unsigned line,
                                   unsigned column) {
  if (!sources.getNumBuffers())
    return "";
  const llvm::MemoryBuffer *buffer =
      sources.getMemoryBuffer(sources.getMainFileID());
  if (file != buffer->getBufferIdentifier())
    return "";
  column = std::max(column, 1u);
  llvm::SMLoc place =
      sources.FindLocForLineAndColumn(sources.getMainFileID(), line, column);
  if (!place.isValid())
    return "";
  StringRef text = buffer->getBuffer();
  size_t at = place.getPointer() - text.data();
  size_t begin = at - (column - 1), from = begin;
  if (column > shownBefore)
    from = at - shownBefore;
  while (from < at && from > begin && continuesCharacter(text[from]))
    ++from;
  size_t end = std::min(text.find_first_of("\r\n", at), text.size());
  size_t to = std::min(end, at + shownAfter);
  while (to < end && continuesCharacter(text[to]))
    ++to;

  std::string shown = from > begin ? "... " : "";
  size_t caret = shown.size() +
                 llvm::count_if(text.slice(from, at),
                                [](char c) { return !continuesCharacter(c); });
  shown += printable(text.slice(from, to)) + (to < end ? " ..." : "");
  return shown + '\n' + std::string(caret, ' ') + "^\n";
}

void Diagnostics::print(mlir::Location location,
                        mlir::DiagnosticSeverity severity,
                        const std::string &message) {
  std::string place = "gptc", shown;
  if (auto range = location->findInstanceOf<mlir::FileLineColRange>()) {
    StringRef file = range.getFilename();
    unsigned line = range.getStartLine(), column = range.getStartColumn();
    place = shortened(file, longestFile) + ':' + llvm::utostr(line) + ':' +
            llvm::utostr(column);
    shown = shownLine(file, line, column);
  }
  write(place + ": " + severityName(severity).str() + ": " +
        shortened(withoutAdvice(message), longestMessage) +
        didYouMean(message, location->getContext()) + '\n' + shown);
}

void Diagnostics::print(mlir::Diagnostic &diagnostic) {
  numErrors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
  print(diagnostic.getLocation(), diagnostic.getSeverity(), diagnostic.str());
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    print(note.getLocation(), note.getSeverity(), note.str());
}

void Diagnostics::error(const Twine &message) {
  ++numErrors;
  say("error: " + message);
}

void Diagnostics::error(StringRef file, const Twine &message) {
  ++numErrors;
  write(shortened(file, longestFile) + ':' +
        shortened(message.str(), longestMessage) + '\n');
}

void Diagnostics::say(const Twine &message) {
  write("gptc: " + shortened(message.str(), longestMessage) + '\n');
}

void Diagnostics::write(StringRef text) {
  if (full)
    return;
  full = text.size() > left;
  if (full)
    text = "gptc: note: further messages are left out\n";
  else
    left -= text.size();
  llvm::errs() << text;
}
