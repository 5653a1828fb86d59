func.func @main(%a: tensor<5x32x48xf32>, %b: tensor<5x48x24xf32>) -> tensor<5x32x24xf32> {
  %c = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<5x32x48xf32>, tensor<5x48x24xf32>) -> tensor<5x32x24xf32>
  return %c : tensor<5x32x24xf32>
}
