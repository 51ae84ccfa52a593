#pragma once

#include <infiniband/verbs.h>

#include "driver/kernel_calls/kernel_port.hpp"

/// The way to the kernel driver that belongs to a context of this libibverbs, for the libraries of this project that
/// stand beside it. Lives as long as the context.
extern "C" rnic::KernelPort* rnic_kernel_port(ibv_context* context);
