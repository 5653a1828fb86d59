func.func @main(%x: tensor<24x96xf32>, %scale: tensor<96xf32>, %shift: tensor<96xf32>) -> tensor<24x96xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<96.0> : tensor<24xf32>
  %epsilon = stablehlo.constant dense<1.0e-5> : tensor<24xf32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<24x96xf32>, tensor<f32>) -> tensor<24xf32>
  %mean = stablehlo.divide %sum, %count : tensor<24xf32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [0] : (tensor<24xf32>) -> tensor<24x96xf32>
  %centred = stablehlo.subtract %x, %means : tensor<24x96xf32>
  %square = stablehlo.multiply %centred, %centred : tensor<24x96xf32>
  %squares = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<24x96xf32>, tensor<f32>) -> tensor<24xf32>
  %variance = stablehlo.divide %squares, %count : tensor<24xf32>
  %safe = stablehlo.add %variance, %epsilon : tensor<24xf32>
  %inverse = stablehlo.rsqrt %safe : tensor<24xf32>
  %inverses = stablehlo.broadcast_in_dim %inverse, dims = [0] : (tensor<24xf32>) -> tensor<24x96xf32>
  %normal = stablehlo.multiply %centred, %inverses : tensor<24x96xf32>
  %scales = stablehlo.broadcast_in_dim %scale, dims = [1] : (tensor<96xf32>) -> tensor<24x96xf32>
  %shifts = stablehlo.broadcast_in_dim %shift, dims = [1] : (tensor<96xf32>) -> tensor<24x96xf32>
  %scaled = stablehlo.multiply %normal, %scales : tensor<24x96xf32>
  %result = stablehlo.add %scaled, %shifts : tensor<24x96xf32>
  return %result : tensor<24x96xf32>
}
