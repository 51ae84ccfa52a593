#pragma once

// The name that the documents of the interface give the header.

#include "driver/ndk/ndkpi.h"
