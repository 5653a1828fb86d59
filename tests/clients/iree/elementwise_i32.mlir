// %d: 1..9
// %s: 0..31
func.func @main(%a: tensor<250xi32>, %d: tensor<250xi32>, %s: tensor<250xi32>) -> (tensor<250xi32>, tensor<250xi32>, tensor<250xi32>) {
  %quotient = stablehlo.divide %a, %d : tensor<250xi32>
  %rest = stablehlo.remainder %a, %d : tensor<250xi32>
  %left = stablehlo.shift_left %a, %s : tensor<250xi32>
  %right = stablehlo.shift_right_arithmetic %a, %s : tensor<250xi32>
  %unsigned = stablehlo.shift_right_logical %a, %s : tensor<250xi32>
  %mixed = stablehlo.xor %left, %right : tensor<250xi32>
  %and = stablehlo.and %mixed, %unsigned : tensor<250xi32>
  %count = stablehlo.popcnt %and : tensor<250xi32>
  %less = stablehlo.compare LT, %quotient, %rest, SIGNED : (tensor<250xi32>, tensor<250xi32>) -> tensor<250xi1>
  %chosen = stablehlo.select %less, %mixed, %count : tensor<250xi1>, tensor<250xi32>
  return %quotient, %rest, %chosen : tensor<250xi32>, tensor<250xi32>, tensor<250xi32>
}
