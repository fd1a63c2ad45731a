//===- ImportTool.h - The command line of gptc-import -----------*- C++ -*-===//
//
//   gptc-import CHECKPOINT [-o model.mlir] [--name NAME] [--dry-run] [-v]
//
// The module, or with --dry-run the summary and the table of tensors (the table
// alone when one is missing), is the only thing on stdout. A
// file is written aside in its folder and renamed. Exit status: 0 done, 1 the
// input is wrong, 2 the command line is wrong.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_IMPORTTOOL_H
#define GPTC_IMPORT_IMPORTTOOL_H

namespace gptc {

int importTool(int argc, const char *const *argv);

} // namespace gptc

#endif // GPTC_IMPORT_IMPORTTOOL_H
