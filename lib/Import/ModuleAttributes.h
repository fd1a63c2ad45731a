//===- ModuleAttributes.h - What stands on the module -----------*- C++ -*-===//
//
// Import.h lists the attributes. What cannot be written down (a token id that
// the model does not have, a tokenizer that this version cannot run) is left
// out and said in a note.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_MODULEATTRIBUTES_H
#define GPTC_IMPORT_MODULEATTRIBUTES_H

#include "ModelInfo.h"
#include "gptc/Import/Import.h"

namespace gptc::importer {

void setAttributes(mlir::ModuleOp module,
                   const checkpoint::Checkpoint &checkpoint,
                   const ImportOptions &options, const ModelInfo &info,
                   std::vector<std::string> &notes);

void setTokenizer(mlir::ModuleOp module,
                  const checkpoint::Checkpoint &checkpoint, int64_t vocab,
                  std::vector<std::string> &notes);

} // namespace gptc::importer

#endif // GPTC_IMPORT_MODULEATTRIBUTES_H
