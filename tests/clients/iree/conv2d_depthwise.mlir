func.func @main(%x: tensor<1x16x16x12xf32>, %w: tensor<3x3x1x12xf32>) -> tensor<1x14x14x12xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 12 : i64}
    : (tensor<1x16x16x12xf32>, tensor<3x3x1x12xf32>) -> tensor<1x14x14x12xf32>
  return %y : tensor<1x14x14x12xf32>
}
