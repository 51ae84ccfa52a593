#pragma once

#include "driver/win32/types.h"
#include "driver/win32/unknwn.h"
#include "driver/win32/ws2def.h"

// The Windows types that the NetworkDirect interface uses.
