func.func @main(%x: tensor<2x12x12x6xf32>) -> tensor<2x6x6x6xf32> {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %pooled = "stablehlo.reduce_window"(%x, %lowest) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %larger = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %larger : tensor<f32>
  }) : (tensor<2x12x12x6xf32>, tensor<f32>) -> tensor<2x6x6x6xf32>
  return %pooled : tensor<2x6x6x6xf32>
}
