// The largest element of each row, and where it is.
func.func @main(%x: tensor<20x77xf32>) -> (tensor<20xf32>, tensor<20xi32>) {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %place = stablehlo.iota dim = 1 : tensor<20x77xi32>
  %value, %index = stablehlo.reduce(%x init: %lowest), (%place init: %zero) across dimensions = [1]
    : (tensor<20x77xf32>, tensor<20x77xi32>, tensor<f32>, tensor<i32>) -> (tensor<20xf32>, tensor<20xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %first = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %first, %a, %b : tensor<i1>, tensor<f32>
      %p = stablehlo.select %first, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %v, %p : tensor<f32>, tensor<i32>
    }
  return %value, %index : tensor<20xf32>, tensor<20xi32>
}
