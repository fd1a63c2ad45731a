//===- gptc-lsp-server.cpp - editor support for gptc's MLIR ---------------===//
//
// mlir-lsp-server with the dialects of gptc-opt: speaks the Language Server
// Protocol on stdin and stdout; diagnostics, hover, definitions, completion.
// `--help` lists its options. Unlike gptc-opt it has no guard against brackets
// nested thousands deep: it reads what its user is writing.
//
//===----------------------------------------------------------------------===//
#include "gptc/Dialect/Gpt/Registry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  gptc::registerDialects(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}
