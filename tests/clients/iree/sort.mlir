func.func @main(%x: tensor<6x40xf32>) -> tensor<6x40xf32> {
  %sorted = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
  }) : (tensor<6x40xf32>) -> tensor<6x40xf32>
  return %sorted : tensor<6x40xf32>
}
