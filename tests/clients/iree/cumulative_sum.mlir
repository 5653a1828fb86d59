func.func @main(%x: tensor<8x60xf32>) -> tensor<8x60xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sums = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1, 60>, padding = dense<[[0, 0], [59, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %sum = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %sum : tensor<f32>
  }) : (tensor<8x60xf32>, tensor<f32>) -> tensor<8x60xf32>
  return %sums : tensor<8x60xf32>
}
