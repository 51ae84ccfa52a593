#!/usr/bin/env python3
"""Writes docs/vectors.schema.json, the JSON schema (draft 2020-12) of test vectors, and holds every vector against it.

usage: vector_schema.py              writes the schema
       vector_schema.py --check      writes nothing; exit 1 if the schema is stale, or a vector below tests/vectors is not as it says
       vector_schema.py FILE...      holds these files against it

The schema says what may stand in a file (docs/vectors.md). What refers to something else in it (names of regions, numbers of queue pairs) is the
reader's to check (testbench/verify); tests/tools/check_vector_schema.py holds that the two refuse the same. The names of counters and those of admin
commands come from rtl/host_interface.
"""
import argparse
import importlib.util
import json
import pathlib
import re
import sys
import tomllib

import generate_host_interface
import needed
from generated import ROOT, bring_up_to_date

SCHEMA = "docs/vectors.schema.json"
VECTORS = "tests/vectors"
NOT_VECTORS = ("clauses.json", "statements.json")

HOSTS = ["A", "B"]
QUEUES = ["initiator", "receive"]
FILLS = ["zero", "pattern"]
SENDING = ["send", "write", "read", "compare_swap", "fetch_add"]
ND_STATUSES = """ND_SUCCESS ND_PENDING ND_TIMEOUT ND_BUFFER_OVERFLOW ND_DEVICE_BUSY ND_NO_MORE_ENTRIES ND_ACCESS_VIOLATION ND_INVALID_PARAMETER
  ND_INVALID_DEVICE_REQUEST ND_DATA_OVERRUN ND_INSUFFICIENT_RESOURCES ND_IO_TIMEOUT ND_NOT_SUPPORTED ND_INTERNAL_ERROR ND_INVALID_PARAMETER_1
  ND_INVALID_PARAMETER_2 ND_INVALID_PARAMETER_3 ND_INVALID_PARAMETER_4 ND_INVALID_PARAMETER_5 ND_INVALID_PARAMETER_6 ND_CANCELED ND_REMOTE_ERROR
  ND_INVALID_BUFFER_SIZE ND_CONNECTION_INVALID ND_INVALID_DEVICE_STATE ND_NO_MEMORY ND_DEVICE_REMOVED ND_INVALID_HANDLE ND_CONNECTION_REFUSED
  ND_CONNECTION_ABORTED ND_CONNECTION_ACTIVE ND_NETWORK_UNREACHABLE ND_HOST_UNREACHABLE ND_SHARING_VIOLATION ND_INVALID_ADDRESS""".split()
OTHER_STATUSES = ["STATUS_BAD_NETWORK_NAME", "STATUS_ADDRESS_ALREADY_ASSOCIATED", "E_NOINTERFACE", "E_POINTER"]
CQE_STATUSES = """Success LocLenErr LocQpOpErr LocProtErr WrFlushErr BadRespErr RemInvReqErr RemAccessErr RemOpErr RetryExcErr RnrRetryExcErr
  FatalErr""".split()
KINDS_OF_ND = ["Send", "Write", "Read", "Receive", "Bind", "Invalidate"]
KINDS = [*KINDS_OF_ND, "CompareSwap", "FetchAdd", "ReceiveWrite", "FastRegister"]
EVENTS = """CqError QpFatal QpRequestError QpAccessError CommEstablished SqDrained DeviceFatal PortActive PortError SrqError SrqLimit
  LastWqeReached""".split()
EVENTS_OF_ERRORS = ["QpFatal", "QpRequestError", "QpAccessError"]
EVENTS_OF_QPS = ["CommEstablished", "SqDrained", "LastWqeReached"]
REQUESTS = "SendFirst SendMiddle SendLast SendLastImmediate SendOnly SendOnlyImmediate WriteFirst WriteMiddle WriteLast WriteLastImmediate WriteOnly WriteOnlyImmediate".split()
OPCODES = [*REQUESTS, *"""ReadRequest ReadResponseFirst ReadResponseMiddle ReadResponseLast ReadResponseOnly Acknowledge AtomicAcknowledge CompareSwap
  FetchAdd SendLastInvalidate SendOnlyInvalidate""".split(), *("Uc" + one for one in REQUESTS), "UdSendOnly", "UdSendOnlyImmediate"]
PACKET_FIELDS = """bytes ack_req solicited length msn immediate pad qp pkey qkey source_qp ipv6 traffic_class hop_limit flow_label source_port dest_port
  udp_checksum mig_req tver fecn becn tag vlan pcp dei""".split()
SYNDROMES = ["Ack", "NakPsn", "NakInvalidRequest", "NakRemoteAccess", "NakRemoteOperational"]
STATES = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"]
NEXT_STATES = ["INIT", "RTR", "RTS", "SQD", "ERR"]
OP_FLAGS = ["SILENT_SUCCESS", "READ_FENCE", "SOLICIT", "ALLOW_READ", "ALLOW_WRITE", "INLINE", "DEFER"]
MR_FLAGS = ["LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE", "READ_SINK"]
ATTRIBUTES = {"ack_timeout": 31, "retry_count": 7, "rnr_retry": 7, "min_rnr_timer": 31, "traffic_class": 255, "hop_limit": 255, "flow_label": 0xFFFFF, "vlan": 0xFFE, "sl": 7,
              "pkey": 0xFFFF, "qkey": 0xFFFFFFFF, "send_psn": 0xFFFFFF, "remote_read": 1, "remote_write": 1, "remote_atomic": 1}
OBJECTS = ["adapter", "queue_pair", "initiator_queue", "receive_queue", "shared_queue", "region", "window", "connector", "listener"]
INTERFACES = ["IUnknown", *("IND2" + one for one in ("Overlapped", "Adapter", "CompletionQueue", "SharedReceiveQueue", "MemoryRegion", "MemoryWindow",
                                                     "QueuePair", "Connector", "Listener"))]
ADAPTER_FIELDS = """VendorId DeviceId AdapterId MaxRegistrationSize MaxWindowSize MaxInitiatorSge MaxReceiveSge MaxReadSge MaxTransferLength
  MaxInlineDataSize MaxInboundReadLimit MaxOutboundReadLimit MaxReceiveQueueDepth MaxInitiatorQueueDepth MaxSharedReceiveQueueDepth
  MaxCompletionQueueDepth InlineRequestThreshold LargeRequestThreshold MaxCallerData MaxCalleeData InOrderDma CqResize""".split()
ADDRESSES = ["peer", "own", "any", "loopback", "nobody", "foreign", "no_family"]
READ_FAULTS = ["unsupported_request", "completer_abort", "poisoned", "timeout", "wrong_boundary", "wrong_byte_count", "wrong_lower_address",
               "too_much_data", "too_little_data", "unknown_tag"]
FAULTS = ["drop", "duplicate", "reorder", "corrupt", "delay", "truncate", "ecn"]
PARTS = ["ethernet", "ip", "udp", "bth", "extended", "payload"]
HEADER_FIELDS = """opcode solicited ack_req pkey dest_qpn psn payload_length va rkey dma_length swap_add compare immediate syndrome msn qkey source_qpn
  ipv6 vlan vlan_tci""".split()

HOST = generate_host_interface.host_tables()
ADMIN_STATUSES, QP_COUNTERS = ([name for name, *_ in next(e for e in HOST.enums if e["name"] == wanted)["values"]]
                               for wanted in ("AdminStatus", "QpCounter"))

NAME = {"type": "string", "minLength": 1}
BOOLEAN = {"type": "boolean"}
OFFSET = {"type": "integer", "minimum": -2**63, "maximum": 2**63 - 1}
HEX = {"type": "string", "pattern": "^( *[0-9a-fA-F]{2})+ *$"}
HEX_OR_ANY = {"type": "string", "pattern": r"^( *([0-9a-fA-F]{2}|\?\?))+ *$"}


def number(bits, least=0, most=None):
    return {"type": "integer", "minimum": least, "maximum": 2**bits - 1 if most is None else most}


U8, U16, U32, U64 = (number(bits) for bits in (8, 16, 32, 64))
QP = number(0, 1, 8)
VLAN, PRIORITY = number(12, 0, 0xFFE), number(3)


def raw_number(bits):
    """A number in an admin command or a doorbell, or whose it is."""
    return {"anyOf": [number(bits), ref("object_number")]}


def object_number():
    of = [thing({"of": {"const": "queue_pair"}}, {"qp": QP, "xor": U32}), thing({"of": one_of(["region", "protection_domain", "memory"]), "name": NAME}, {"xor": U32}),
          thing({"of": one_of(["initiator_queue", "receive_queue", "shared_queue"])}, {"xor": U32})]
    return {"oneOf": [*of, thing({"free": one_of(["queue_pair", "queue", "shared_queue", "event_queue", "key"])})]}


def command_fields(layout):
    """Those of an admin command or a doorbell."""
    return thing({}, {name: raw_number(min(width, 64)) for name, width, *_ in generate_host_interface.named_fields(layout)})


def one_of(names):
    return {"enum": list(names)}


def ref(name):
    return {"$ref": f"#/$defs/{name}"}


def listed(items, least=0):
    return {"type": "array", "items": items, **({"minItems": least} if least else {})}


def thing(needed, optional=(), **more):
    """An object with these keys and no others."""
    return {"type": "object", "properties": {**needed, **dict(optional)}, "required": list(needed), "additionalProperties": False, **more}


def without(*keys):
    return {"properties": {key: False for key in keys}}


def flags(names):
    return {"anyOf": [listed(one_of(names)), U32]}


def either(items):
    """One of several, and the clause that leaves it open."""
    return thing({"either": listed(items, 2), "clause": NAME})


def packet_pattern():
    value = r"(0x[0-9a-fA-F]{1,16}|[0-9]{1,20})"
    opcode = rf"({'|'.join(OPCODES)}|opcode={value})"
    fields = [rf"({'|'.join(PACKET_FIELDS)})={value}", rf"psn=-?{value}", rf"syndrome=({value}|{'|'.join(SYNDROMES)})", rf"credits=({value}|none)",
              r"rkey=[^ ]+", "lost"]
    any_of = "|".join(fields)
    return rf"^(A>B|B>A)( +({any_of}))* +{opcode}( +({any_of}|{opcode}))* *$"


def place(with_length):
    token = {"oneOf": [thing({"corrupt": one_of(["index", "high_index", "tag"])}), *(thing({key: NAME}) for key in ("window", "stale", "current"))]}
    length = {"length": U32} if with_length else {}
    needed = {"region": NAME, "offset": OFFSET, **length}
    return {"oneOf": [thing(needed, {"address": U64, "token": token}), thing({**needed, "token": {"const": "other"}, "of": NAME}, {"address": U64})]}


def setup():
    host = {"mtu": one_of([256, 512, 1024, 2048, 4096]),
            **{key: U32 for key in ("initiator_depth", "receive_depth", "initiator_sge", "receive_sge", "inline_size", "read_limit", "initiator_reads",
                                    "responder_reads", "cq_depth", "flow_label", "qkey")},
            "quota": thing({}, {"pinned_bytes": U64, "ring_bytes": U64}),
            "ack_timeout": number(5), "retry_count": number(3), "rnr_retry": number(3), "min_rnr_timer": number(5),
            **{key: BOOLEAN for key in ("remote_read", "remote_write", "remote_atomic")},
            "first_psn": number(24), "pkey": U16, "traffic_class": U8, "hop_limit": U8, "vlan": VLAN, "sl": PRIORITY}
    region = thing({"host": one_of(HOSTS), "name": NAME, "size": U64},
                   {"flags": flags([*MR_FLAGS, "REMOTE_ATOMIC"]), "fill": one_of(FILLS), "domain": one_of(["own", "other"]), "memory_of": NAME,
                    "reads": one_of(READ_FAULTS), "list_reads": one_of(READ_FAULTS)},
                   **{"not": {"properties": {"domain": {"const": "other"}}, "required": ["domain", "list_reads"]}})
    rc_only = {"properties": {"type": {"const": "RC"}, "fast_register": {"const": False}}}
    return thing({}, {"type": one_of(["RC", "UC", "UD", "QP1", "RAW_PACKET"]), "fast_register": BOOLEAN, "queue_pairs": number(0, 1, 8),
                      "srq": thing({}, {"depth": U32, "sge": U32, "threshold": U32, "domain": one_of(["own", "other"])}), "one_cq": BOOLEAN, "connected": BOOLEAN, "connections": BOOLEAN,
                      "ipv6": BOOLEAN, "iommu_faults": BOOLEAN, "split_completions": BOOLEAN, "ordinary_world": BOOLEAN, "link_gbps": {"type": "number", "exclusiveMinimum": 0},
                      "link_delay_ns": {"type": "number", "minimum": 0}, "completion_timeout": one_of(["A1", "A2", "B1", "B2", "C1", "C2"]), **host, "A": ref("host_setup"), "B": ref("host_setup"),
                      "regions": listed(region)},
                 allOf=[{"if": {"required": ["srq"]}, "then": {"properties": {"type": {"enum": ["RC", "UD"]}, "fast_register": {"const": False}}}},
                        {"if": {"properties": {"connections": {"const": True}}, "required": ["connections"]}, "then": rc_only},
                        {"if": {"properties": {"type": {"const": "QP1"}}, "required": ["type"]},
                         "then": {"properties": {"queue_pairs": {"const": 1}, "one_cq": {"const": False}}}},
                        {"if": {"properties": {"type": {"const": "RAW_PACKET"}}, "required": ["type"]},
                         "then": {"properties": {"one_cq": {"const": False}}}}]), thing({}, host)


def result():
    """A completion: of NetworkDirect, or of the CQE."""
    common = {"context": U64}
    more = {"bytes": U32, "qp": QP}

    def status(of):
        return {"anyOf": [of, either(of)]}
    return {"oneOf": [thing({"type": one_of(KINDS_OF_ND), **common, "status": status(ref("nd_status"))}, more),
                      thing({"type": one_of(KINDS), **common, "status": status({"anyOf": [ref("cqe_status"), {"const": "AnyError"}]})},
                            {**more, "immediate": U32, "invalidated": NAME, "source_qp": QP, "tag": BOOLEAN, "vlan": VLAN, "sl": PRIORITY,
                             "l3_ok": BOOLEAN, "l4_ok": BOOLEAN, "syndrome": U8})]}


def request(optional=(), **needed):
    sge = {"anyOf": [listed(ref("sge")), thing({"null": U32})]}
    return {"context": U64, "sge": sge, **needed}, {"qp": QP, "flags": flags(OP_FLAGS), **dict(optional)}


def steps():
    """do: (keys that it needs, keys that it may have, what more its schema says)."""
    returns, call = {"returns": ref("returned")}, {"call": ref("returned")}
    qp = {"qp": QP}

    def null(*arguments):
        return {"null": one_of(arguments)}
    datagram = {"to_qp": QP, "qpn_xor": U32, "qkey": U32,
                "address": thing({}, {"ipv6": BOOLEAN, "traffic_class": U8, "hop_limit": U8, "flow_label": U32, "vlan": VLAN, "sl": PRIORITY, "group": ref("group")})}
    sent = {**returns, **datagram}
    private_data = {"data": {"type": "string"}, "data_bytes": number(0, 0, 2**20), "bad_data": BOOLEAN}
    limits = {"inbound": U32, "outbound": U32}
    address = {"address": one_of(ADDRESSES), "port": U16, "short_address": BOOLEAN}
    overlapped = {"name": NAME, "request": NAME}
    opcode = {"anyOf": [ref("opcode"), U8]}
    contents = [{"equals": ref("place")}, {"payload_of": thing({"psn": OFFSET}, {"qp": QP, "byte": U64})}, {"fill": one_of(FILLS)}]
    known = {
        "receive": ({"context": U64, "sge": request()[0]["sge"]}, {**qp, "flags": flags(["DEFER"]), **returns}),
        "send": request({**sent, "immediate": U32, "invalidate": NAME, "ip_csum": BOOLEAN}),
        "write": request({**sent, "immediate": U32}, remote=ref("place")),
        "read": request(sent, remote=ref("place")),
        "compare_swap": request(sent, remote=ref("place"), compare=U64, swap=U64),
        "fetch_add": request(sent, remote=ref("place"), add=U64),
        "flush": ({}, {**qp, **returns}),
        "complete": ({"results": listed(ref("result"))}, {"queue": one_of(QUEUES), "within_us": U32, "not_before_us": U32}),
        "no_completion": ({}, {"queue": one_of(QUEUES), "for_us": U32}),
        "get_results": ({"ask": U32, "results": listed(ref("result"))}, {"queue": one_of(QUEUES)}),
        "notify": [({"name": NAME, "type": {"anyOf": [one_of(["ANY", "SOLICITED", "ERRORS"]), U32]}},
                    {"queue": one_of(QUEUES), **call, **null("overlapped")}),
                   ({"name": NAME, "queue": {"const": "shared"}}, {**call, **null("overlapped")})],
        "notified": ({"name": NAME, "status": returns["returns"]}, {"within_us": U32}),
        "not_notified": ({"name": NAME}, {"for_us": U32}),
        "memory": [({"region": NAME, "offset": U64, "value": U64}, {}),
                   ({"region": NAME, "offset": U64, "bytes": HEX_OR_ANY}, {}),
                   *(({"region": NAME, "offset": U64, "length": U64, **content}, {}) for content in contents),
                   ({"region": NAME, "offset": U64, "length": U64, **either({"oneOf": [thing(content) for content in contents]})["properties"]}, {})],
        "untouched": ({"region": NAME, "offset": U64, "length": U64}, {"for_us": U32}),
        "store": [({"region": NAME, "offset": U64, "value": U64}, {}), ({"region": NAME, "offset": U64, "bytes": HEX}, {})],
        "revoke": ({"region": NAME, "offset": U64}, {}),
        "ring_reads": [({"answer": one_of([*READ_FAULTS, "data"])}, {**qp, "queue": one_of(QUEUES)}),
                       ({"answer": one_of([*READ_FAULTS, "data"]), "queue": {"const": "shared"}}, {})],
        "register": ({"region": NAME, "size": U64, "buffer": one_of(["valid", "null", "unmapped"])},
                     {"flags": flags(MR_FLAGS), **null("overlapped"), **call, **returns}),
        "deregister": ({"region": NAME}, {**null("overlapped"), **call, **returns}),
        "wait": ({"us": U32}, {}),
        "fault": ({"fault": one_of(FAULTS)},
                  {**qp, "opcode": opcode, "psn": OFFSET, "hand_made": BOOLEAN, "nth": number(64, 1), "count": number(64, 1), "bit": U32, "bytes": number(32, 1),
                   "frames": U32, "hold_ns": number(32, 1), "ns": U32}),
        "frame": [({"bytes": HEX}, {"fcs": one_of(["right", "wrong"]), "append": U32, "then_us": U32}), ({"opcode": opcode, "psn": OFFSET},
                  {**qp, "payload": number(0, 0, 9000), "length": U32, "remote": ref("place"), "swap_add": U64, "compare": U64, "immediate": U32,
                   "syndrome": U8, "msn": U32, "pkey": U16, "qkey": U32, "source_qp": QP, "qpn_xor": U32, "ack_req": BOOLEAN, "solicited": BOOLEAN,
                   "group": ref("group"), "tag": {"anyOf": [{"const": "none"}, thing({}, {"vlan": number(12), "pcp": PRIORITY, "dei": BOOLEAN})]}, "from": one_of(["peer", "stranger"]), "ipv6": BOOLEAN,
                   "set": listed(thing({"part": one_of(PARTS), "byte": U64, "value": U8})),
                   "insert": listed(thing({"part": one_of(PARTS), "byte": U64, "bytes": HEX})),
                   **{key: one_of(["right", "wrong"]) for key in ("icrc", "checksum", "fcs")}, "cut": U32, "append": U32, "then_us": U32})],
        "receive_ethernet": ({}, {**qp, "enable": BOOLEAN, "all_groups": BOOLEAN, "promiscuous": BOOLEAN, "qpn_xor": U32, "groups": listed(number(0, 0, 63))}),
        "counter": [alternative for more in ({"name": ref("counter")}, {"name": ref("qp_counter"), "qp": QP}) for other in
                    ({} if "qp" in more else {"no_other": BOOLEAN},) for alternative in
                    (({**more, "equals": U64}, other), ({**more, "at_least": U64}, {"at_most": U64, **other}), ({**more, "at_most": U64}, other))],
        "state": ({"is": one_of(STATES)}, {**qp, "draining": BOOLEAN}),
        "bind": ({"context": U64, "window": NAME, "region": NAME, "offset": U64, "length": U64},
                 {**qp, "flags": flags(OP_FLAGS), **null("region", "window"), "unchecked": thing({}, {"key_of": NAME, "defer": BOOLEAN}), **returns},
                 {"not": {"required": ["null", "unchecked"]}}),
        "invalidate": ({"context": U64, "window": NAME}, {**qp, "flags": flags(OP_FLAGS), **null("window"), **returns}),
        "release_window": ({"window": NAME}, {}),
        "modify": ({"to": one_of(NEXT_STATES)},
                   {**qp, "notify": BOOLEAN, **returns, "set": thing({}, {name: number(0, 0, most) for name, most in ATTRIBUTES.items()})},
                   {"not": {"properties": {"notify": {"const": True}}, "required": ["notify", "set"]}}),
        "close": ({}, {**qp, **returns}),
        "attach": ({"group": ref("group")}, {**qp, **returns}),
        "detach": ({"group": ref("group")}, {**qp, **returns}),
        "ring": ({}, qp), "reset": ({}, qp), "make": ({}, qp),
        "event": [({"type": {"const": "CqError"}, "queue": one_of(QUEUES)}, {"within_us": U32}),
                  ({"type": one_of(EVENTS_OF_ERRORS)}, {**qp, "cause": ref("cqe_status"), "within_us": U32}),
                  ({"type": one_of(EVENTS_OF_QPS)}, {**qp, "within_us": U32}),
                  ({"type": one_of(["SrqLimit", "SrqError", "PortActive", "PortError", "DeviceFatal"])}, {"within_us": U32})],
        "no_event": ({}, {"for_us": U32}),
        "link": ({"is": one_of(["down", "up"])}, {}),
        "resize_cq": ({"depth": U32}, {"queue": one_of(QUEUES), **returns}),
        "moderate_cq": ({"count": U16, "us": U16}, {"queue": one_of(QUEUES)}),
        "modify_srq": ({}, {"depth": U32, "threshold": U32, **returns}),
        "fast_register": ({"context": U64, "name": NAME, "region": NAME, "offset": U64, "length": U64},
                          {**qp, "flags": flags([*MR_FLAGS, "REMOTE_ATOMIC"]), "base": U64, "pages": U64, "remote_access": BOOLEAN,
                           "options": flags(["SILENT_SUCCESS", "READ_FENCE", "DEFER"]), **returns}),
        "end_registration": ({"context": U64, "name": NAME}, {**qp, "options": flags(["SILENT_SUCCESS", "READ_FENCE", "DEFER"]), **returns}),
        "query_adapter": ({"version": U32},
                          {"size": U32, "needs": U32, **null("info", "size"), **returns,
                           "fields": thing({}, {name: {"anyOf": [U64, thing({}, {"at_least": U64, "at_most": U64})]} for name in ADAPTER_FIELDS})}),
        "query_affinity": ({}, {"queue": one_of([*QUEUES, "shared"]), **null("group", "affinity"), "group": U16, **returns}),
        "query_interface": ref_objects(OBJECTS, {"interface": one_of(INTERFACES)}, {**null("object"), **returns}),
        "release": ref_objects(["queue_pair", "initiator_queue", "receive_queue", "region", "connector", "listener"]),
        "cancel": ref_objects(["initiator_queue", "receive_queue", "shared_queue", "region", "connector", "listener"]),
        "end_device": ({}, {}),
        "restart_device": ({}, {}),
        "bind_address": ({"name": NAME}, {"listener": BOOLEAN, **address, **null("address"), **returns}),
        "listen": ({"name": NAME}, {"backlog": U32, **returns}),
        "get_request": ({**overlapped, "connector": NAME}, {**call, **null("connector", "overlapped")}),
        "connect": (overlapped, {**qp, **address, **limits, **private_data, **call, **null("queue_pair", "address", "overlapped")}),
        "accept": (overlapped, {**qp, **limits, **private_data, **call, **null("queue_pair", "overlapped")}),
        "reject": ({"name": NAME}, {**private_data, **returns}),
        **{name: (overlapped, {**call, **null("overlapped")}) for name in ("complete_connect", "disconnect", "notify_disconnect")},
        "query_connection": [({"name": NAME, "what": what}, {**keys, "listener": listener, "room": U32, "needs": U32, **returns,
                                                             **null("size", "inbound", "outbound")})
                             for what, keys, listener in (({"const": "private_data"}, private_data, {"const": False}),
                                                          ({"const": "read_limits"}, limits, {"const": False}),
                                                          ({"const": "local_address"}, address, BOOLEAN),
                                                          ({"const": "peer_address"}, address, {"const": False}))],
    }
    refused = one_of(status for status in ADMIN_STATUSES if status != "Success")
    result = {"type": "string", "pattern": r"^( *([0-9a-fA-F]{2}|\?\?)){1,48} *$"}
    known["admin"] = [({"opcode": {"const": name}, "number": raw_number(32), "status": status}, {"fields": command_fields(layout), **more})
                      for name, _, layout in generate_host_interface.admin_bodies(HOST)
                      for status, more in (({"const": "Success"}, {"result": result}), (refused, {}))]
    page, store = {"page": one_of(["own", "kernel", "other"])}, {"enum": [8, 64]}
    known["doorbell"] = [({"register": {"const": name}}, {"fields": command_fields(layout), **page, "bytes": store}) for name, _, layout in generate_host_interface.doorbells(HOST)]
    pieces = [thing({"at": {**number(8), "multipleOf": 8}}, {"bytes": {"const": 8}}),
              *(thing({"at": {**number(8), "multipleOf": size}, "bytes": {"const": size}}) for size in (16, 32, 64))]
    known["push_wqe"] = ({"pieces": listed({"oneOf": pieces}, 1)}, {**qp, **page})
    known["spoil_wqe"] = ({"set": listed(thing({"byte": number(9, 0, 511), "value": U8}), 1)}, {**qp, "queue": one_of([*QUEUES, "shared"])})
    known["enable"] = ({}, {"is": BOOLEAN})
    known["configure"] = ({}, {name: BOOLEAN for name in ("bus_master", "completion_timeout_disable", "extended_tags", "msix_enable", "msix_mask")}, {"minProperties": 3})
    known["credits"] = ({"withheld": listed(one_of(["posted", "non_posted", "completions"]))}, {"to": one_of(["host", "nic"]), "for_us": number(32, 1)})
    at, enables = {**number(32), "multipleOf": 4}, {"first_be": number(0, 0, 15), "last_be": number(0, 1, 15)}
    pages = {"page": one_of(["registers", "own", "kernel", "other"])}
    payload, seen = ({"type": "string", "pattern": rf"^(( *{byte}){{4}}){{1,64}} *$"} for byte in ("[0-9a-fA-F]{2}", r"([0-9a-fA-F]{2}|\?\?)"))
    known["tlp"] = [({"at": at, "write": payload}, {**pages, **enables, "poisoned": BOOLEAN}),
                    ({"at": at, "dwords": number(0, 1, 64), "answer": {"anyOf": [{"const": "UnsupportedRequest"}, seen]}}, {**pages, **enables}),
                    ({"at": at, "answer": {"const": "UnsupportedRequest"}}, {**pages, "first_be": enables["first_be"]})]
    known["send"] = (*known["send"], {"not": {"required": ["immediate", "invalidate"]}})
    return known


def ref_objects(objects, needed=(), optional=()):
    """A step about one of these objects: by its name, its number, or alone."""
    forms = []
    for names, more_needed, more in ((["region", "window", "connector", "listener"], {"name": NAME}, {}), (["queue_pair"], {}, {"qp": QP}),
                                     (["adapter", "initiator_queue", "receive_queue", "shared_queue"], {}, {})):
        if some := [name for name in names if name in objects]:
            forms.append(({"object": one_of(some), **more_needed, **dict(needed)}, {**more, **dict(optional)}))
    return forms


def step_schema(name, forms):
    def form(needed, optional, more=()):
        return thing({"host": one_of(HOSTS), "do": {"const": name}, **needed}, optional, **dict(more))
    forms = forms if isinstance(forms, list) else [forms]
    return form(*forms[0]) if len(forms) == 1 else {"oneOf": [form(*one) for one in forms]}


def schema():
    counters = tomllib.loads((ROOT / "rtl/host_interface/counters.toml").read_text())["counters"]
    both, host = setup()
    known = steps()
    some_packets = {"anyOf": [ref("packets"), ref("packet"), ref("several_packets")]}
    packet_list = listed({"anyOf": [ref("packet"), either(some_packets), thing({"mixed": listed(some_packets, 2)})]})
    head = {"document": {**NAME, "description": "What the rule is from"}, "clause": {**NAME, "description": "Where it stands in the document"},
            "rule": {**NAME, "description": "What it says, and so what must come out"}}
    no_datagrams = {"allOf": [{"if": {"properties": {"do": {"const": "frame"}}}, "then": without("qkey", "source_qp")},
                              {"if": {"properties": {"do": one_of(SENDING)}}, "then": without("to_qp", "address", "qkey", "qpn_xor")}]}
    repeats = {"required": ["repeat"]}
    datagrams = {"properties": {"setup": {"properties": {"type": one_of(["UD", "QP1"])}, "required": ["type"]}}, "required": ["setup"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:rnic:vectors:1",
        "title": "Test vector of an RDMA NIC",
        "description": "Generated by scripts/vector_schema.py. What each key means: docs/vectors.md.",
        "oneOf": [ref("vector"), ref("frame_vector")],
        "$defs": {
            "vector": thing({**head, "steps": listed({"if": repeats, "then": ref("repeat"), "else": ref("step")}, 1)},
                            {"setup": ref("setup"),
                             "packets": {"anyOf": [ref("packets"), thing({}, {name: ref("packets") for name in HOSTS})]},
                             "no_packets": listed(ref("packet"))},
                            **{"if": datagrams, "else": {"properties": {"steps": {"items": {
                                "if": repeats, "then": {"properties": {"steps": {"items": no_datagrams}}}, "else": no_datagrams}}}}}),
            "frame_vector": thing({**head, "frame": {"type": "string", "pattern": "^([0-9a-fA-F]{2})+$"},
                                   "header": {"type": "object", "properties": {name: U64 for name in HEADER_FIELDS}, "additionalProperties": False}}),
            "setup": both, "host_setup": host,
            "repeat": thing({"repeat": number(0, 1, 10000), "steps": listed(ref("step"), 1)}),
            "step": {"type": "object", "properties": {"do": one_of(sorted(known))}, "required": ["do"],
                     "allOf": [{"if": {"properties": {"do": {"const": name}}}, "then": ref(f"step_{name}")} for name in known]},
            **{f"step_{name}": step_schema(name, forms) for name, forms in known.items()},
            "nd_status": one_of(ND_STATUSES), "cqe_status": one_of(CQE_STATUSES), "returned": one_of([*ND_STATUSES, *OTHER_STATUSES]),
            "opcode": one_of(OPCODES),
            "object_number": object_number(), "result": result(), "place": place(False), "sge": place(True),
            "group": {"type": "string", "anyOf": [{"pattern": r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$"}, {"pattern": "^[0-9a-fA-F:.]*:[0-9a-fA-F:.]*$"}]},
            "counter": one_of(name for table in counters for name, _ in table["names"]),
            "qp_counter": one_of(QP_COUNTERS),
            "packet": {"type": "string", "pattern": packet_pattern()},
            "packets": packet_list,
            "several_packets": packet_list["items"],
        },
    }


def text_of(current):
    """Readable: a line a definition."""
    def line(value):
        return json.dumps(value, separators=(", ", ": "))
    head = "".join(f'  {line(key)}: {line(value)},\n' for key, value in current.items() if key != "$defs")
    return "{\n" + head + '  "$defs": {\n' + ",\n".join(f"    {line(key)}: {line(value)}" for key, value in current["$defs"].items()) + "\n  }\n}\n"


def read_vector(path):
    """The JSON of a vector, whose comments go."""
    text = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda match: match.group(1) or "", path.read_text(), flags=re.S)
    return json.loads(text)


def vector_files():
    return [path for path in sorted((ROOT / VECTORS).rglob("*.json")) if path.name not in NOT_VECTORS]


def validator(of):
    import jsonschema
    jsonschema.Draft202012Validator.check_schema(of)
    return jsonschema.Draft202012Validator(of)


def deepest(error):
    """The error of the form that comes closest: of the one that fails farthest inside the file."""
    while error.context:
        error = max(error.context, key=lambda one: (len(one.absolute_path), one.validator not in ("const", "enum")))
    return error


def complaints(paths, against):
    found = []
    for path in paths:
        try:
            value = read_vector(path)
        except (OSError, ValueError) as error:
            found.append(f"{path}: {error}")
            continue
        for error in against.iter_errors(value):
            at = deepest(error)
            found.append(f"{path}: {'/'.join(map(str, at.absolute_path)) or 'the whole'}: {at.message}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    current = schema()
    if not arguments.files:
        bring_up_to_date({SCHEMA: text_of(current)}, arguments.check, pathlib.Path(__file__).name, "its tables")
    if arguments.files or arguments.check:
        if importlib.util.find_spec("jsonschema") is None:
            needed.missing("the Python module jsonschema", "Debian's package python3-jsonschema; scripts/setup.sh --tests installs it")
        if found := complaints(arguments.files or vector_files(), validator(current)):
            sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
