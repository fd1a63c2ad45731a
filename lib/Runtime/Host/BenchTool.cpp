#include "gptc/Runtime/Host/Tools.h"
int gptc::host::benchTool(int, const char *const *) { return 70; }
