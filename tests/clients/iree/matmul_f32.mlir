func.func @main(%a: tensor<96x112xf32>, %b: tensor<112x80xf32>) -> tensor<96x80xf32> {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<96x112xf32>, tensor<112x80xf32>) -> tensor<96x80xf32>
  return %c : tensor<96x80xf32>
}
