// SPDX-License-Identifier: Apache-2.0
//
// What an operation does, and its outcome, given what is known of the item that has its tag. Combinational.
module decision
  import wc_pkg::*;
(
    input  meta_t       op,
    input  found_t      found,
    input  logic        fits,    // both values together, for append and prepend
    output do_t         what,
    output outcome_t    outcome,
    output err_t        error    // with OUT_ERROR
);
  logic any_cas, alive, cas_differs;
  assign any_cas = found.any_cas;
  assign alive = found.alive;
  assign cas_differs = found.cas_differs;
  always_comb begin
    what = D_RESULT;
    outcome = OUT_ERROR;
    error = op.op == OP_ERROR ? op.err : ERR_NONNUM;
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
          else if (!any_cas || cas_differs) outcome = OUT_EXISTS;
        end else if (op.op == OP_REPLACE) begin
          if (!alive) outcome = OUT_NOT_STORED;
        end
        if (outcome != OUT_STORED) what = D_RESULT;
      end
      OP_APPEND, OP_PREPEND: begin
        outcome = OUT_STORED;
        what = D_JOIN;
        if (!alive) outcome = OUT_NOT_STORED;
        else if (any_cas && cas_differs) outcome = OUT_EXISTS;
        else if (!fits) outcome = OUT_NOT_STORED;
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
          if (found.has_words) begin
            if (any_cas && cas_differs) outcome = OUT_EXISTS;
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
      OP_NOP: outcome = OUT_NONE;
      OP_END: outcome = OUT_END;
      OP_FLUSH, OP_OK: outcome = OUT_OK;
      OP_VERSION: outcome = OUT_VERSION;
      OP_NOOP: outcome = OUT_NOOP;
      default: ;
    endcase
  end
endmodule
