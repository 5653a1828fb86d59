func.func @main(%x: tensor<33x100xf32>) -> tensor<33x100xf32> {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %largest = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<33x100xf32>, tensor<f32>) -> tensor<33xf32>
  %shift = stablehlo.broadcast_in_dim %largest, dims = [0] : (tensor<33xf32>) -> tensor<33x100xf32>
  %shifted = stablehlo.subtract %x, %shift : tensor<33x100xf32>
  %exp = stablehlo.exponential %shifted : tensor<33x100xf32>
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<33x100xf32>, tensor<f32>) -> tensor<33xf32>
  %norm = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<33xf32>) -> tensor<33x100xf32>
  %result = stablehlo.divide %exp, %norm : tensor<33x100xf32>
  return %result : tensor<33x100xf32>
}
