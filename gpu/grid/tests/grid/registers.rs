//! Tests of the user SGPRs that a kernel can ask for.

use hipr_code_object::KernelDescriptor;
use hipr_grid::{Addresses, user_sgprs};
use hipr_isa::aperture::PRIVATE_BUFFER;

#[test]
fn a_kernel_has_what_it_asks_for_in_the_order_of_the_properties() {
    let addresses = Addresses {
        dispatch_packet: 0x1_0000_0010,
        queue: 0x2_0000_0020,
        kernarg: 0x3_0000_0030,
        dispatch_id: 0x4_0000_0040,
    };
    let buffer = [
        PRIVATE_BUFFER as u32,
        (PRIVATE_BUFFER >> 32) as u32 | 1 << 31,
        64 * 48,
        1 << 19 | 3 << 21 | 1 << 23,
    ];
    let registers: [&[u32]; 7] = [&buffer, &[0x10, 1], &[0x20, 2], &[0x30, 3], &[0x40, 4], &[0, 0], &[48]];
    for properties in 0..1 << registers.len() {
        let descriptor = KernelDescriptor { properties, ..KernelDescriptor::default() };
        let wanted = |bit: &usize| properties >> bit & 1 == 1;
        let expected: Vec<u32> =
            (0..registers.len()).filter(wanted).flat_map(|bit| registers[bit]).copied().collect();
        assert_eq!(user_sgprs(&descriptor, 48, &addresses), expected, "{properties:#x}");
    }
}
