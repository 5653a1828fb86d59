// Two convolutions with rectifiers and pooling, then a dense layer and the logarithm of a softmax.
// %k1: scale 0.3
// %k2: scale 0.1
// %w: scale 0.1
func.func @main(%x: tensor<2x16x16x3xf32>, %k1: tensor<3x3x3x8xf32>, %k2: tensor<3x3x8x16xf32>, %w: tensor<256x10xf32>) -> tensor<2x10xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero1 = stablehlo.constant dense<0.0> : tensor<2x16x16x8xf32>
  %zero2 = stablehlo.constant dense<0.0> : tensor<2x8x8x16xf32>
  %c1 = stablehlo.convolution(%x, %k1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x16x16x3xf32>, tensor<3x3x3x8xf32>) -> tensor<2x16x16x8xf32>
  %r1 = stablehlo.maximum %c1, %zero1 : tensor<2x16x16x8xf32>
  %p1 = "stablehlo.reduce_window"(%r1, %lowest) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %larger = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %larger : tensor<f32>
  }) : (tensor<2x16x16x8xf32>, tensor<f32>) -> tensor<2x8x8x8xf32>
  %c2 = stablehlo.convolution(%p1, %k2) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x8x8x8xf32>, tensor<3x3x8x16xf32>) -> tensor<2x8x8x16xf32>
  %r2 = stablehlo.maximum %c2, %zero2 : tensor<2x8x8x16xf32>
  %p2 = "stablehlo.reduce_window"(%r2, %lowest) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %larger = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %larger : tensor<f32>
  }) : (tensor<2x8x8x16xf32>, tensor<f32>) -> tensor<2x4x4x16xf32>
  %flat = stablehlo.reshape %p2 : (tensor<2x4x4x16xf32>) -> tensor<2x256xf32>
  %y = stablehlo.dot_general %flat, %w, contracting_dims = [1] x [0] : (tensor<2x256xf32>, tensor<256x10xf32>) -> tensor<2x10xf32>
  %exp = stablehlo.exponential %y : tensor<2x10xf32>
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x10xf32>, tensor<f32>) -> tensor<2xf32>
  %log = stablehlo.log %sum : tensor<2xf32>
  %logs = stablehlo.broadcast_in_dim %log, dims = [0] : (tensor<2xf32>) -> tensor<2x10xf32>
  %result = stablehlo.subtract %y, %logs : tensor<2x10xf32>
  return %result : tensor<2x10xf32>
}
