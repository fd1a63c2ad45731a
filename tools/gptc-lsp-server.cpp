//===- gptc-lsp-server.cpp - editor support for gptc's MLIR ---------------===//
//
// mlir-lsp-server with the dialects of gptc-opt: speaks the Language Server
// Protocol on stdin and stdout; diagnostics, hover, definitions, completion.
// `--help` lists its options.
//
// MLIR's parser, and that of JSON, recurse. Messages therefore pass a filter
// first: a text that would overflow the stack is replaced by one with an error
// at that place, and a message that would is dropped. To know a text after a
// change, the filter applies changes itself and hands on all of the text.
//
//===----------------------------------------------------------------------===//
#include "LlvmStreams.h"
#include "StandardStreams.h"
#include "gptc/Dialect/Gpt/ParseGuard.h"
#include "gptc/Dialect/Gpt/Registry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LSP/Protocol.h"
#include <thread>
#include <unistd.h>

using llvm::StringRef;
namespace json = llvm::json;
namespace lsp = llvm::lsp;

namespace {
class Filter {
public:
  Filter(FILE *in, FILE *out) : in(in), out(out) {}
  /// Hands messages on until `in` ends, then closes `out`.
  void run();

private:
  std::optional<std::string> read();
  bool check(json::Value &message);
  std::string harmless(StringRef text) const;

  FILE *in, *out;
  llvm::StringMap<std::string> documents; // by their URI
};
} // namespace

/// The body of the next message.
std::optional<std::string> Filter::read() {
  size_t length = 0;
  char line[4096];
  while (fgets(line, sizeof(line), in)) {
    StringRef header = StringRef(line).trim();
    if (header.consume_front_insensitive("content-length:"))
      header.trim().getAsInteger(10, length);
    else if (header.empty() && length) {
      std::string body(length, '\0');
      body.resize(fread(body.data(), 1, length, in));
      return body;
    }
  }
  return std::nullopt;
}

/// The text, or the name of the rule that it breaks where it breaks it: an
/// unknown op, which the parser says.
std::string Filter::harmless(StringRef text) const {
  std::string error;
  if (gptc::bracketDepthOk(text, gptc::defaultBracketLimit, error))
    return text.str();
  auto [line, rest] = StringRef(error).split(':');
  auto [column, rule] = rest.split(": error: ");
  unsigned down = 1, right = 1;
  line.getAsInteger(10, down);
  column.getAsInteger(10, right);
  std::string op = rule.take_front(80).str();
  for (char &c : op)
    if (!llvm::isAlnum(c))
      c = '_';
  return std::string(down - 1, '\n') + std::string(right - 1, ' ') + op;
}

/// Makes the texts in the message harmless; false: the message is to be
/// dropped.
bool Filter::check(json::Value &message) {
  json::Object *object = message.getAsObject();
  json::Object *params = object ? object->getObject("params") : nullptr;
  json::Object *document = params ? params->getObject("textDocument") : nullptr;
  auto method = object ? object->getString("method") : std::nullopt;
  auto uri = document ? document->getString("uri") : std::nullopt;
  if (!method || !uri)
    return true;
  if (*method == "textDocument/didOpen") {
    std::string &text = documents[*uri];
    text = document->getString("text").value_or("").str();
    (*document)["text"] = harmless(text);
  } else if (*method == "textDocument/didChange") {
    std::string &text = documents[*uri];
    lsp::DidChangeTextDocumentParams changes;
    json::Path::Root root;
    if (!fromJSON(*object->get("params"), changes, root) ||
        failed(lsp::TextDocumentContentChangeEvent::applyTo(
            changes.contentChanges, text)))
      return false;
    (*params)["contentChanges"] =
        json::Array{json::Object{{"text", harmless(text)}}};
  } else if (*method == "textDocument/didClose") {
    documents.erase(*uri);
  }
  return true;
}

void Filter::run() {
  while (std::optional<std::string> body = read()) {
    std::string error;
    if (!gptc::bracketDepthOk(*body, gptc::defaultBracketLimit, error))
      continue;
    if (auto message = json::parse(*body)) {
      if (!check(*message))
        continue;
      *body = llvm::formatv("{0}", *message).str();
    } else {
      llvm::consumeError(message.takeError()); // the server says so
    }
    fprintf(out, "Content-Length: %zu\r\n\r\n", body->size());
    fwrite(body->data(), 1, body->size(), out);
    fflush(out);
  }
  fclose(out);
}

/// Puts the filter between stdin and the server, which reads descriptor 0.
static void filterInput() {
  int ends[2], in = ::dup(STDIN_FILENO);
  if (in < 0 || ::pipe(ends))
    return;
  ::dup2(ends[0], STDIN_FILENO);
  ::close(ends[0]);
  std::thread([in, out = ends[1]] {
    FILE *from = ::fdopen(in, "r"), *to = ::fdopen(out, "w");
    if (from && to)
      Filter(from, to).run();
    else
      ::close(out); // nothing can be read: the server sees the end
  }).detach();
}

int main(int argc, char **argv) {
  gptc::holdStandardStreams();
  mlir::DialectRegistry registry;
  gptc::registerDialects(registry);
  // With options the input may have another form (--lit-test).
  if (argc == 1)
    filterInput();
  bool wrong = failed(mlir::MlirLspServerMain(argc, argv, registry));
  return gptc::finishStreams("gptc-lsp-server", wrong);
}
