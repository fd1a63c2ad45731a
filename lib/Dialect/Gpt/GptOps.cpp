#include "gptc/Dialect/Gpt/Gpt.h"
