#!/usr/bin/env python3
"""Holds that docs/vectors.schema.json and the reader of vectors (rnic verify --check) take and refuse the same files.

usage: check_vector_schema.py RNIC [--all]

From the schema come vectors that use every key of every step, of the setup, and of what stands in them: the reader must take each of them, in one of
the setups. Each is then spoiled: a key that nobody knows, a key less, values of every other type and range, other names. What the schema refuses the
reader must refuse; what the schema takes the reader may refuse only because of what a schema cannot say (a name that nothing has). The names that the
reader says it knows must be those of the schema. Without --all a third of the spoiled ones is enough: the schema takes its time. Exit code 77: python3-jsonschema is missing.
"""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import vector_schema  # noqa: E402

SCHEMA = json.loads((ROOT / vector_schema.SCHEMA).read_text())
HEAD = {"document": "d", "clause": "c", "rule": "r"}
SETUPS = ({}, {"connections": True}, {"srq": {}}, {"type": "UD", "queue_pairs": 2})
# Refusals that are about more than one place of a file.
BEYOND = re.compile(r"no region|no window|there are \d+ queue pairs|are more than \"ask\"|of another IP version|the setup has no|is not a packet of host"
                    r"|a second one of its kind|GetResults gives statuses|groups are for queue pairs|a second region|is no address|has no opcode|are for queue pairs of type (?:RC|RAW_PACKET)|is for queue pairs of type RC"
                    r"|as many bytes as the dwords|of one dword has no|first and last of several dwords")
WRONG = (True, 0, -1, 1.5, 2**31, 2**32, 2**63, 2**70, "", "no such name", [], [None], {}, None)
PART = 3  # of so many spoiled vectors one is tried
PACKETS = ["A>B SendOnly", "B>A Acknowledge psn=-1 syndrome=NakPsn credits=none msn=3", "A>B opcode=0x81 lost", "A>B ReadRequest rkey=b length=4096 lost"]
BAD_PACKETS = ["A>C SendOnly", "SendOnly", "A>B", "A>B SendTwice", "A>B SendOnly psn=x", "A>B SendOnly colour=1", "A>B SendOnly psn=0xg",
               "A>B Acknowledge credits=some"]


def resolved(schema):
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def forms(schema):
    """The alternatives of a schema, each without one of its own."""
    schema = resolved(schema)
    for key in ("oneOf", "anyOf"):
        if key in schema and "type" not in schema:
            return [form for one in schema[key] for form in forms(one)]
    return [schema]


def example(schema, key=""):
    """A small value that the schema takes; names are those of the first host's region."""
    schema = forms(schema)[0]
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema["type"]
    if kind == "object":
        names = list(schema.get("required", []))
        names += [name for name in schema.get("properties", {}) if name not in names][:max(0, schema.get("minProperties", 0) - len(names))]
        return {name: example(schema["properties"][name], name) for name in names}
    if kind == "array":
        return [example(schema["items"]) for _ in range(schema.get("minItems", 0))]
    if kind == "string":
        pattern = schema.get("pattern", "")
        return "224.0.0.1" if "anyOf" in schema else "0a" * (4 if "{4}" in pattern else 1) if "a-fA-F]{2}" in pattern else "A>B SendOnly" if pattern else "a"
    if kind == "boolean":
        return False
    return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1) if schema.get("minimum", 0) >= 0 else 0


# Fields of admin commands are many, and all take these: one goes through them.
ONCE = {id(form) for form in forms({"$ref": "#/$defs/object_number"})}
gone_through = set()


def examples(schema):
    """Values of a schema that together have every key that it knows, at any depth; each with the place in it that the others have not."""
    for form in forms(schema):
        if id(form) in gone_through:
            continue
        gone_through.update({id(form)} & ONCE)
        small = example(form)
        yield small, ()
        if form.get("type") == "object":
            for key, of in form["properties"].items():
                for value, place in examples(of):
                    yield {**small, key: value}, (key, *place)
        elif form.get("type") == "array":
            for value, place in examples(form["items"]):
                yield [value] * max(1, form.get("minItems", 0)), (0, *place)


def distinct(values):
    seen = set()
    for value in values:
        if (text := json.dumps(value)) not in seen:
            seen.add(text)
            yield value


def distinct_examples(schema):
    seen = {}
    for value, place in examples(schema):
        seen.setdefault(json.dumps(value), (value, place))
    return seen.values()


def vectors():
    """Vectors, each with the place of what it is an example of; groups of them of which one must do."""
    wait = [{"host": "A", "do": "wait", "us": 1}]
    for name, form in SCHEMA["$defs"].items():
        if not name.startswith("step_"):
            continue
        for step, place in distinct_examples(form):
            yield [({**HEAD, "setup": setup, "steps": [step]}, ("steps", 0, *place)) for setup in SETUPS]
    yield [({**HEAD, "steps": [{"repeat": 2, "steps": wait}]}, ("steps", 0))]
    for setup, place in distinct_examples(SCHEMA["$defs"]["setup"]):
        yield [({**HEAD, "setup": setup, "steps": wait}, ("setup", *place))]
    for frame, place in distinct_examples(SCHEMA["$defs"]["frame_vector"]):
        yield [(frame, place)]
    lists = [PACKETS, [], [{"either": [["A>B SendOnly"], []], "clause": "c"}], [{"mixed": [[], "A>B SendOnly", {"either": [[], []], "clause": "c"}]}]]
    for packets in [*lists, {"A": PACKETS[:1]}, {"B": PACKETS[1:2]}, {}]:
        yield [({**HEAD, "steps": wait, "packets": packets}, ("packets",))]
    yield [({**HEAD, "steps": wait, "no_packets": PACKETS}, ("no_packets",))]


def places(value, at=()):
    """Every place inside a value."""
    yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*at, key))


def found_at(value, place):
    for key in place:
        value = value[key]
    return value


def with_value(vector, place, value):
    if not place:
        return value
    new = copy.deepcopy(vector)
    found_at(new, place[:-1])[place[-1]] = value
    return new


def spoiled(vector, place):
    """The vector with something changed at or below the place."""
    for inner in places(found_at(vector, place)):
        at = (*place, *inner)
        here = found_at(vector, at)
        if isinstance(here, dict):
            yield with_value(vector, at, {**here, "no such key": 1})
            for key in here:
                yield with_value(vector, at, {other: value for other, value in here.items() if other != key})
        for value in WRONG:
            if at and json.dumps(value) != json.dumps(here):
                yield with_value(vector, at, value)
        if isinstance(here, str):
            for other in {other for enum in ENUMS if here in enum for other in enum}:
                yield with_value(vector, at, other)
            for packet in BAD_PACKETS if here in PACKETS else ():
                yield with_value(vector, at, packet)


def enums(schema):
    if isinstance(schema, dict):
        if "enum" in schema:
            yield schema["enum"]
        for value in schema.values():
            yield from enums(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from enums(value)


def lists_of_forms():
    """Names that a key may have in some form of a step: what the reader has in one list."""
    for definition in SCHEMA["$defs"].values():
        keys = {}
        for form in definition.get("oneOf", ()):
            for key, of in form.get("properties", {}).items():
                keys.setdefault(key, set()).update(of.get("enum", [of["const"]] if "const" in of else ()))
        yield from keys.values()


ENUMS = list(enums(SCHEMA))
NAMES = [sorted(map(str, names)) for names in (*ENUMS, *lists_of_forms())]


def refusals(rnic, all_vectors):
    """What the reader says of each: nothing, or why it refuses it."""
    with tempfile.TemporaryDirectory(prefix="rnic_vector_schema_") as folder:
        for number, vector in enumerate(all_vectors):
            (pathlib.Path(folder) / f"{number:06}.json").write_text(json.dumps(vector))
        done = subprocess.run([rnic, "verify", "--check", folder], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        if done.returncode not in (0, 2):
            sys.exit(f"rnic verify --check: {done.returncode}\n{done.stdout[-1000:]}{done.stderr}")
    said = [None] * len(all_vectors)
    for number, message in re.findall(r"^malformed: \S*/(\d{6})\.json(.*)$", done.stdout, re.M):
        said[int(number)] = message
    if (done.returncode == 2) != any(said):
        sys.exit(f"rnic verify --check: exit code {done.returncode}, {sum(map(bool, said))} refused")
    return said


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--all"]):
        sys.exit(__doc__)
    try:
        against = vector_schema.validator(SCHEMA)
    except ImportError:
        print("skipped: python3-jsonschema is missing (scripts/setup.sh --tests brings it)")
        sys.exit(77)
    rnic, wrong = sys.argv[1], []

    groups = list(vectors())
    flat = [one for group in groups for one in group]
    said = dict(zip(map(id, flat), refusals(rnic, [vector for vector, _ in flat])))
    good = []
    for group in groups:
        taken = [one for one in group if said[id(one)] is None]
        valid = [one for one in group if against.is_valid(one[0])]
        place = group[0][1]
        for one in taken:
            if one not in valid:
                wrong.append(f"the reader takes what the schema refuses: {json.dumps(one[0])}")
        beyond = [one for one in valid if said[id(one)] and BEYOND.search(said[id(one)])]
        for one in valid:
            if one not in taken and one not in beyond:
                wrong.append(f"the schema takes what the reader refuses ({said[id(one)]}): {json.dumps(one[0])}")
        good += [one for one in taken if one in valid][:1] or beyond[:1]
        if not valid:
            wrong.append(f"the schema refuses its own example: {json.dumps(found_at(group[0][0], place))}")

    bad = list(distinct(vector for one, place in good for vector in spoiled(one, place)))
    if "--all" not in sys.argv:
        bad = [vector for vector in bad if zlib.crc32(json.dumps(vector).encode()) % PART == 0]
    refused = 0
    for vector, message in zip(bad, refusals(rnic, bad)):
        valid = against.is_valid(vector)
        refused += not valid
        if message is None and not valid:
            wrong.append(f"the reader takes what the schema refuses: {json.dumps(vector)}")
        elif message and valid and not BEYOND.search(message):
            wrong.append(f"the schema takes what the reader refuses ({message}): {json.dumps(vector)}")
        elif message and (known := re.search(r"\"(?:\\\"|[^\"])*\" is \"no such name\"; known are (.*)", message)):
            names = sorted(known.group(1).split(", "))
            if names not in NAMES:
                wrong.append(f"the reader knows names that are no list of the schema: {', '.join(names)}")
    print(f"{len(good)} vectors of the schema, {len(bad)} spoiled, {refused} refused by both" if not wrong else "\n".join(sorted(set(wrong))))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
