// The same with GoogleTest, for unit tests without MLIR.
#pragma once
#include "std.h"
#include <gtest/gtest.h>
