func.func @main(%x: tensor<2x14x14x8xf32>, %w: tensor<3x3x8x16xf32>) -> tensor<2x14x14x16xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x14x14x8xf32>, tensor<3x3x8x16xf32>) -> tensor<2x14x14x16xf32>
  return %y : tensor<2x14x14x16xf32>
}
