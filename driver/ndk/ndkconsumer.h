#pragma once

#include "driver/ndk/ndkpi.h"

extern "C" {

/// What a consumer has that `rnic lockstep` loads (docs/ndk.md), as a program has its main: the adapter of its host,
/// which is the consumer's until it returns, an IPv4 address of the host, and the words of the command line, its own
/// name first. The exit code. Called at PASSIVE_LEVEL, on a thread of its own.
int NdkConsumerMain(NDK_ADAPTER* adapter, const SOCKADDR* own, int count, char* words[]);
}
