func.func @main(%x: tensor<1x6x17x17xf32>, %w: tensor<12x6x5x5xf32>) -> tensor<1x12x7x7xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {stride = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x6x17x17xf32>, tensor<12x6x5x5xf32>) -> tensor<1x12x7x7xf32>
  return %y : tensor<1x12x7x7xf32>
}
