// SPDX-License-Identifier: Apache-2.0
//
// The two beats of a stream that come next: a consumer that moves bytes by a part of a beat sees what
// it needs. It takes the first one, or both, and may wait for the second one.
module two_beats #(
    parameter int W = 8
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         in_valid,
    output logic         in_ready,
    input  logic [W-1:0] in_data,
    output logic         first_valid,
    output logic [W-1:0] first,
    output logic         second_valid,  // only with first_valid
    output logic [W-1:0] second,
    input  logic         take,       // the first one, which is valid
    input  logic         take_both   // with take
);
  logic waits;  // a beat behind the first one, or on its way there
  logic moves;
  assign moves = !first_valid || take;
  assign in_ready = !waits || moves;
  assign second_valid = first_valid && waits;

  always_ff @(posedge clk) begin
    if (rst) begin
      first_valid <= 1'b0;
      waits <= 1'b0;
    end else begin
      if (moves) first_valid <= waits && !take_both;
      if (in_ready) waits <= in_valid;
    end
  end
  always_ff @(posedge clk) begin
    if (moves) first <= second;
    if (in_ready) second <= in_data;
  end

`ifdef FORMAL
  `include "two_beats_formal.svh"
`endif
endmodule
