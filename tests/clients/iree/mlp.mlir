// Two layers, with biases and a rectifier between them.
func.func @main(%x: tensor<16x64xf32>, %w1: tensor<64x128xf32>, %b1: tensor<128xf32>, %w2: tensor<128x10xf32>, %b2: tensor<10xf32>) -> tensor<16x10xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<16x128xf32>
  %h = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x128xf32>) -> tensor<16x128xf32>
  %bias1 = stablehlo.broadcast_in_dim %b1, dims = [1] : (tensor<128xf32>) -> tensor<16x128xf32>
  %h1 = stablehlo.add %h, %bias1 : tensor<16x128xf32>
  %relu = stablehlo.maximum %h1, %zero : tensor<16x128xf32>
  %y = stablehlo.dot_general %relu, %w2, contracting_dims = [1] x [0] : (tensor<16x128xf32>, tensor<128x10xf32>) -> tensor<16x10xf32>
  %bias2 = stablehlo.broadcast_in_dim %b2, dims = [1] : (tensor<10xf32>) -> tensor<16x10xf32>
  %result = stablehlo.add %y, %bias2 : tensor<16x10xf32>
  return %result : tensor<16x10xf32>
}
