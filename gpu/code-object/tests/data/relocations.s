// Dynamic relocations of a linked code object, and a kernel, so that it loads.
// UNDEFINED=1 adds one of a symbol that nothing defines.
    .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
    .text
    .globl tiny
    .p2align 8
    .type tiny,@function
tiny:
    s_endpgm
    .size tiny, .-tiny

    .rodata
    .p2align 6
    .amdhsa_kernel tiny
        .amdhsa_next_free_vgpr 9
        .amdhsa_next_free_sgpr 20
        .amdhsa_accum_offset 4
    .end_amdhsa_kernel

    .data
    .p2align 3
    .macro variable name
        .globl \name
        .type \name,@object
        .size \name, 8
\name:
    .endm

    variable value
    .quad 0x1122334455667788
    variable absolute
    .quad value + 4
    .hidden inner
    .type inner,@object
    .size inner, 8
inner:
    .quad 0
    variable relative
    .quad inner + 1
    variable distance
    .quad value - 16 - .
    .weak nowhere
    variable weak_pointer
    .quad nowhere
    .ifdef UNDEFINED
    .type elsewhere,@object
    variable undefined_pointer
    .quad elsewhere
    .endif

    .amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.kernels:
  - .name: tiny
    .symbol: tiny.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 26
    .vgpr_count: 9
    .max_flat_workgroup_size: 256
    .reqd_workgroup_size: [ 16, 4, 2 ]
...
    .end_amdgpu_metadata
