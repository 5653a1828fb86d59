// Newton's method for square roots, until the worst error is small: the host reads a flag back in every turn.
// modes: streams
func.func @main(%x: tensor<50xf32>) -> (tensor<50xf32>, tensor<i32>) {
  %one = stablehlo.constant dense<1.0> : tensor<50xf32>
  %half = stablehlo.constant dense<0.5> : tensor<50xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %next = stablehlo.constant dense<1> : tensor<i32>
  %limit = stablehlo.constant dense<12> : tensor<i32>
  %magnitude = stablehlo.abs %x : tensor<50xf32>
  %positive = stablehlo.add %magnitude, %one : tensor<50xf32>
  %root:2 = stablehlo.while(%guess = %positive, %turn = %zero) : tensor<50xf32>, tensor<i32>
    cond {
      %lowest = stablehlo.constant dense<0.0> : tensor<f32>
      %small = stablehlo.constant dense<1.0e-3> : tensor<f32>
      %square = stablehlo.multiply %guess, %guess : tensor<50xf32>
      %error = stablehlo.subtract %square, %positive : tensor<50xf32>
      %size = stablehlo.abs %error : tensor<50xf32>
      %worst = stablehlo.reduce(%size init: %lowest) applies stablehlo.maximum across dimensions = [0] : (tensor<50xf32>, tensor<f32>) -> tensor<f32>
      %far = stablehlo.compare GT, %worst, %small : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %early = stablehlo.compare LT, %turn, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %go = stablehlo.and %far, %early : tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %quotient = stablehlo.divide %positive, %guess : tensor<50xf32>
      %sum = stablehlo.add %guess, %quotient : tensor<50xf32>
      %better = stablehlo.multiply %sum, %half : tensor<50xf32>
      %count = stablehlo.add %turn, %next : tensor<i32>
      stablehlo.return %better, %count : tensor<50xf32>, tensor<i32>
    }
  return %root#0, %root#1 : tensor<50xf32>, tensor<i32>
}
