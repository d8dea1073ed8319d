// SPDX-License-Identifier: Apache-2.0
//
// What an operation does, and its outcome, given the item that has its key. Combinational.
module decision
  import wc_pkg::*;
(
    input  meta_t       op,
    input  logic        alive,   // there is such an item, and it has not expired
    input  logic [63:0] i_cas,   // of the item
    input  logic [11:0] i_vlen,
    output do_t         what,
    output outcome_t    outcome,
    output err_t        error,   // with OUT_ERROR
    output logic [12:0] joined   // bytes of both values, for append and prepend
);
  logic cas_differs;
  assign cas_differs = op.cas_cmp && op.cas != i_cas;
  assign joined = {1'b0, i_vlen} + {1'b0, op.vlen};
  always_comb begin
    what = D_RESULT;
    outcome = OUT_ERROR;
    error = ERR_NONNUM;
    case (op.op)
      OP_GET: begin
        outcome = alive ? OUT_HIT : OUT_MISS;
        if (alive) what = D_VALUE;
      end
      OP_SET, OP_ADD, OP_REPLACE: begin
        outcome = OUT_STORED;
        what = D_STORE;
        if (op.op == OP_ADD) begin
          if (alive) outcome = OUT_NOT_STORED;
        end else if (op.cas_cmp) begin
          if (!alive) outcome = OUT_NOT_FOUND;
          else if (op.cas == 64'd0 || cas_differs) outcome = OUT_EXISTS;
        end else if (op.op == OP_REPLACE) begin
          if (!alive) outcome = OUT_NOT_STORED;
        end
        if (outcome != OUT_STORED) what = D_RESULT;
      end
      OP_APPEND, OP_PREPEND: begin
        outcome = OUT_STORED;
        what = D_JOIN;
        if (!alive) outcome = OUT_NOT_STORED;
        else if (op.cas != 64'd0 && cas_differs) outcome = OUT_EXISTS;
        else if (joined > 13'(VALUE_MAX)) outcome = OUT_NOT_STORED;
        if (outcome != OUT_STORED) what = D_RESULT;
      end
      OP_DELETE: begin
        if (!alive) outcome = OUT_NOT_FOUND;
        else if (cas_differs) outcome = OUT_EXISTS;
        else begin
          outcome = OUT_DELETED;
          what = D_REMOVE;
        end
      end
      OP_INCR, OP_DECR: begin
        if (alive) begin
          if (i_vlen != 12'd0) begin
            if (op.cas != 64'd0 && cas_differs) outcome = OUT_EXISTS;
            else begin
              outcome = OUT_NUMBER;
              what = D_COUNT;
            end
          end
        end else if (op.vivify) begin
          outcome = OUT_NUMBER;
          what = D_VIVIFY;
        end else begin
          outcome = OUT_NOT_FOUND;
        end
      end
      OP_TOUCH: begin
        outcome = alive ? OUT_TOUCHED : OUT_NOT_FOUND;
        if (alive) what = D_TOUCH;
      end
      default: ;
    endcase
  end
endmodule
