//! Coordinates on the faces of a cube map: a direction's face lies on the axis along which it is longest, z before y before x.

/// Returns the longest axis: 0, 1, 2 for x, y, z.
#[inline(always)]
fn axis(x: f32, y: f32, z: f32) -> usize {
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        2
    } else if y.abs() >= x.abs() {
        1
    } else {
        0
    }
}

/// Returns the face's number: 0 and 1 for positive and negative x, 2 and 3 for y, 4 and 5 for z.
#[inline(always)]
pub(crate) fn cube_face(x: f32, y: f32, z: f32) -> f32 {
    let axis = axis(x, y, z);
    let negative = [x, y, z][axis] < 0.0;
    (axis * 2 + usize::from(negative)) as f32
}

/// Returns the horizontal coordinate on the face, not yet divided by the major axis.
#[inline(always)]
pub(crate) fn cube_s(x: f32, y: f32, z: f32) -> f32 {
    match axis(x, y, z) {
        2 if z < 0.0 => -x,
        2 | 1 => x,
        _ if x < 0.0 => z,
        _ => -z,
    }
}

/// Returns the vertical coordinate on the face, not yet divided by the major axis.
#[inline(always)]
pub(crate) fn cube_t(x: f32, y: f32, z: f32) -> f32 {
    match axis(x, y, z) {
        1 if y < 0.0 => -z,
        1 => z,
        _ => -y,
    }
}

/// Returns twice the coordinate along the longest axis.
#[inline(always)]
pub(crate) fn cube_major(x: f32, y: f32, z: f32) -> f32 {
    [x, y, z][axis(x, y, z)] * 2.0
}
