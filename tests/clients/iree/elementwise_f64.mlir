func.func @main(%a: tensor<129xf64>, %b: tensor<129xf64>) -> tensor<129xf64> {
  %product = stablehlo.multiply %a, %b : tensor<129xf64>
  %magnitude = stablehlo.abs %product : tensor<129xf64>
  %root = stablehlo.sqrt %magnitude : tensor<129xf64>
  %sum = stablehlo.add %root, %a : tensor<129xf64>
  %quotient = stablehlo.divide %sum, %b : tensor<129xf64>
  return %quotient : tensor<129xf64>
}
