#pragma once

// Annotations of parameters, which say nothing to a compiler that does not check them.

#define _In_
#define _In_opt_
#define _In_z_
#define _In_reads_(size)
#define _In_reads_opt_(size)
#define _In_reads_bytes_(size)
#define _In_reads_bytes_opt_(size)
#define _In_bytecount_(size)
#define _Inout_
#define _Inout_opt_
#define _Inout_updates_(size)
#define _Inout_updates_bytes_(size)
#define _Out_
#define _Out_opt_
#define _Out_writes_(size)
#define _Out_writes_bytes_(size)
#define _Out_writes_bytes_opt_(size)
#define _Out_writes_bytes_to_opt_(size, used)
#define _Out_bytecap_(size)
#define _Out_bytecap_post_bytecount_(size, used)
#define _Out_opt_bytecap_post_bytecount_(size, used)
#define _Outptr_
#define _Deref_out_
#define _Ret_maybenull_
#define _Check_return_
#define _Must_inspect_result_
#define _Analysis_noreturn_
#define _Analysis_assume_(expression)
#define _Use_decl_annotations_
#define __fallthrough [[fallthrough]]
