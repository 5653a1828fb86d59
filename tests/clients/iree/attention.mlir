// Four heads of 16 over 24 positions; a position sees itself and what is before it.
func.func @main(%q: tensor<4x24x16xf32>, %k: tensor<4x24x16xf32>, %v: tensor<4x24x16xf32>) -> tensor<4x24x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %scale = stablehlo.constant dense<0.25> : tensor<4x24x24xf32>
  %hidden = stablehlo.constant dense<-1.0e9> : tensor<4x24x24xf32>
  %product = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x24x16xf32>, tensor<4x24x16xf32>) -> tensor<4x24x24xf32>
  %score = stablehlo.multiply %product, %scale : tensor<4x24x24xf32>
  %from = stablehlo.iota dim = 1 : tensor<4x24x24xi32>
  %to = stablehlo.iota dim = 2 : tensor<4x24x24xi32>
  %seen = stablehlo.compare GE, %from, %to : (tensor<4x24x24xi32>, tensor<4x24x24xi32>) -> tensor<4x24x24xi1>
  %masked = stablehlo.select %seen, %score, %hidden : tensor<4x24x24xi1>, tensor<4x24x24xf32>
  %largest = stablehlo.reduce(%masked init: %lowest) applies stablehlo.maximum across dimensions = [2] : (tensor<4x24x24xf32>, tensor<f32>) -> tensor<4x24xf32>
  %shift = stablehlo.broadcast_in_dim %largest, dims = [0, 1] : (tensor<4x24xf32>) -> tensor<4x24x24xf32>
  %shifted = stablehlo.subtract %masked, %shift : tensor<4x24x24xf32>
  %exp = stablehlo.exponential %shifted : tensor<4x24x24xf32>
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x24x24xf32>, tensor<f32>) -> tensor<4x24xf32>
  %norm = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<4x24xf32>) -> tensor<4x24x24xf32>
  %weight = stablehlo.divide %exp, %norm : tensor<4x24x24xf32>
  %result = stablehlo.dot_general %weight, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x24x24xf32>, tensor<4x24x16xf32>) -> tensor<4x24x16xf32>
  return %result : tensor<4x24x16xf32>
}
