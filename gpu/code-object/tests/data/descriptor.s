// A kernel descriptor in which every field has a value that differs from the default.
    .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
    .text
    .globl all
    .p2align 8
    .type all,@function
all:
    s_endpgm
    .size all, .-all

    .rodata
    .p2align 6
    .amdhsa_kernel all
        .amdhsa_group_segment_fixed_size 96
        .amdhsa_private_segment_fixed_size 36
        .amdhsa_kernarg_size 120
        .amdhsa_user_sgpr_count 16
        .amdhsa_user_sgpr_dispatch_ptr 1
        .amdhsa_user_sgpr_queue_ptr 1
        .amdhsa_user_sgpr_kernarg_segment_ptr 1
        .amdhsa_user_sgpr_dispatch_id 1
        .amdhsa_user_sgpr_kernarg_preload_length 5
        .amdhsa_user_sgpr_kernarg_preload_offset 3
        .amdhsa_user_sgpr_private_segment_size 1
        .amdhsa_uses_dynamic_stack 1
        .amdhsa_enable_private_segment 1
        .amdhsa_system_sgpr_workgroup_id_x 1
        .amdhsa_system_sgpr_workgroup_id_y 1
        .amdhsa_system_sgpr_workgroup_id_z 1
        .amdhsa_system_sgpr_workgroup_info 1
        .amdhsa_system_vgpr_workitem_id 2
        .amdhsa_next_free_vgpr 70
        .amdhsa_next_free_sgpr 40
        .amdhsa_accum_offset 44
        .amdhsa_float_round_mode_32 1
        .amdhsa_float_round_mode_16_64 2
        .amdhsa_float_denorm_mode_32 1
        .amdhsa_float_denorm_mode_16_64 2
        .amdhsa_dx10_clamp 0
        .amdhsa_ieee_mode 0
        .amdhsa_fp16_overflow 1
        .amdhsa_tg_split 1
    .end_amdhsa_kernel

    .amdgpu_metadata
---
amdhsa.version: [ 1, 1 ]
amdhsa.printf: [ "1:1:4:%d\\n" ]
amdhsa.kernels:
  - .name: all
    .symbol: all.kd
    .kernarg_segment_size: 120
    .kernarg_segment_align: 16
    .group_segment_fixed_size: 96
    .private_segment_fixed_size: 36
    .wavefront_size: 64
    .sgpr_count: 46
    .vgpr_count: 70
    .max_flat_workgroup_size: 256
    .kind: init
    .args:
      - { .name: local, .offset: 0, .size: 4, .value_kind: dynamic_shared_pointer, .pointee_align: 16, .address_space: local }
      - { .offset: 8, .size: 8, .value_kind: hidden_queue_ptr }
...
    .end_amdgpu_metadata
