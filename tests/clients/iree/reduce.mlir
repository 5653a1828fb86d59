// Sums over rows, over columns and over everything; a maximum and a product.
func.func @main(%x: tensor<64x130xf32>, %small: tensor<9x7xf32>) -> (tensor<64xf32>, tensor<130xf32>, tensor<f32>, tensor<130xf32>, tensor<9xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %rows = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x130xf32>, tensor<f32>) -> tensor<64xf32>
  %columns = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64x130xf32>, tensor<f32>) -> tensor<130xf32>
  %all = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x130xf32>, tensor<f32>) -> tensor<f32>
  %largest = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [0] : (tensor<64x130xf32>, tensor<f32>) -> tensor<130xf32>
  %product = stablehlo.reduce(%small init: %one) applies stablehlo.multiply across dimensions = [1] : (tensor<9x7xf32>, tensor<f32>) -> tensor<9xf32>
  return %rows, %columns, %all, %largest, %product : tensor<64xf32>, tensor<130xf32>, tensor<f32>, tensor<130xf32>, tensor<9xf32>
}
