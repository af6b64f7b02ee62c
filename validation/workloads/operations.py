"""Operations that were timed one by one inside of a step, as modules of the TPU compiler.

MaxText's shard_mode report (671cec44d, JAX 0.11.1) lists operations of a train step on v5p with
their times by xprof. The report gives shapes and where their layouts differ; that gradients are
bf16 follows from the bandwidth that is stated for the update. Where a row is of grade C, what it
read or wrote may have been in VMEM, or its layout is not known.
"""

ROWS, COLUMNS = "{1,0:T(8,128)}", "{0,1:T(8,128)}"


def convert() -> str:
    """Gathered weights, narrowed."""
    return f"""HloModule convert, is_scheduled=true

ENTRY main {{
  x = f32[262144,128]{ROWS} parameter(0)
  ROOT convert = bf16[262144,128]{{1,0:T(8,128)(2,1)}} convert(x)
}}
"""


def relayout() -> str:
    """65.5 MB with the other dimension along the lanes."""
    return f"""HloModule relayout, is_scheduled=true

ENTRY main {{
  x = f32[512,32000]{COLUMNS} parameter(0)
  ROOT copy = f32[512,32000]{ROWS} copy(x)
}}
"""


def sines() -> str:
    """Tables of sines and cosines of the same angles, rows of 32."""
    table = f"f32[163840,32]{ROWS}"
    return f"""HloModule sines, is_scheduled=true

fused {{
  angle = {table} parameter(0)
  sine = {table} sine(angle)
  cosine = {table} cosine(angle)
  ROOT both = ({table}, {table}) tuple(sine, cosine)
}}

ENTRY main {{
  angle = {table} parameter(0)
  ROOT fusion = ({table}, {table}) fusion(angle), kind=kLoop, calls=fused
}}
"""


def update_stack() -> str:
    """One of three layers' weights, whose stack has the layers along the sublanes' tiles of one."""
    layer, stack = "f32[1,512,8192]{2,1,0:T(8,128)}", "f32[3,512,8192]{2,0,1:T(1,128)}"
    return f"""HloModule update_stack, is_scheduled=true

ENTRY main {{
  stack = {stack} parameter(0)
  layer = {layer} parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT update = {stack} dynamic-update-slice(stack, layer, at, zero, zero)
}}
"""


def adamw(shape: str, gradient: str) -> str:
    """Parameters and both moments, in one kernel."""
    tile = "(2,1)" if gradient == "bf16" else ""
    array, given = f"f32[{shape}]{ROWS}", f"{gradient}[{shape}]{{1,0:T(8,128){tile}}}"
    results = f"({array}, {array}, {array})"
    return f"""HloModule adamw, is_scheduled=true

fused {{
  p = {array} parameter(0)
  m = {array} parameter(1)
  v = {array} parameter(2)
  narrow = {given} parameter(3)
  g = {array} convert(narrow)
  decay = f32[] constant(0.9)
  decays = {array} broadcast(decay), dimensions={{}}
  share = f32[] constant(0.1)
  shares = {array} broadcast(share), dimensions={{}}
  old_m = {array} multiply(m, decays)
  new_m = {array} multiply(g, shares)
  first = {array} add(old_m, new_m)
  square = {array} multiply(g, g)
  new_v = {array} multiply(square, shares)
  old_v = {array} multiply(v, decays)
  second = {array} add(old_v, new_v)
  root = {array} sqrt(second)
  safe = {array} add(root, shares)
  ratio = {array} divide(first, safe)
  weight = {array} multiply(p, shares)
  both = {array} add(ratio, weight)
  change = {array} multiply(both, shares)
  new = {array} subtract(p, change)
  ROOT all = {results} tuple(new, first, second)
}}

ENTRY main {{
  p = {array} parameter(0)
  m = {array} parameter(1)
  v = {array} parameter(2)
  g = {given} parameter(3)
  ROOT fusion = {results} fusion(p, m, v, g), kind=kLoop, calls=fused
}}
"""


def small_copy() -> str:
    """Copies 4 KB."""
    return """HloModule small_copy, is_scheduled=true

ENTRY main {
  x = f32[1024]{0:T(1024)} parameter(0)
  ROOT copy = f32[1024]{0:T(1024)} copy(x)
}
"""


# Programs for one chip of v5p.
OPERATIONS = {
    "convert_v5p": convert(),
    "relayout_v5p": relayout(),
    "sines_v5p": sines(),
    "update_stack_v5p": update_stack(),
    "adamw_v5p_512x32000": adamw("512,32000", "bf16"),
    "adamw_v5p_512x4": adamw("512,4", "f32"),
    "small_copy_v5p": small_copy(),
}
