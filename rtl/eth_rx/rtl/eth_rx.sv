// SPDX-License-Identifier: Apache-2.0
//
// Reads the Ethernet header, with up to two VLAN tags, and passes on what follows it, aligned to
// beats. A frame that ends inside its header, has a group address or another EtherType than IP's
// goes no further; `drop` says why.
module eth_rx
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    input  logic        in_error,  // with in_last: the frame is damaged
    // One for each frame that is passed on; offered no later than its first beat.
    output logic        ctx_valid,
    input  logic        ctx_ready,
    output eth_ctx_t    ctx,
    output logic        ctx_v6,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last,
    output logic        out_error,
    output logic        drop_not_for_us,
    output logic        drop_truncated,
    output logic        drop_unsupported,
    output logic        drop_may_change   // with a drop: whoever reads more of it may find requests
);
  typedef enum logic [1:0] {S_MAC, S_TYPE, S_PASS, S_DROP} state_t;
  state_t state;
  eth_ctx_t held;

  logic [191:0] view;
  logic [4:0] count, take;
  logic [24:0] at_least;
  logic tail, window_ready;
  logic error_valid, error_flag, error_room;

  assign in_ready = window_ready && error_room;
  byte_window window (
      .clk, .rst, .in_valid(in_valid && error_room), .in_ready(window_ready), .in_data, .in_bytes,
      .in_last, .view, .count, .at_least, .tail, .take
  );
  logic ends;
  assign ends = tail && take == count && at_least[1];
  fifo #(.W(1), .LOG(2)) errors (
      .clk, .rst, .in_valid(in_valid && in_ready && in_last), .in_ready(error_room),
      .in_data(in_error), .out_valid(error_valid), .out_ready(ends), .out_data(error_flag)
  );

  function automatic logic [47:0] mac_at(logic [47:0] bytes);
    mac_at = {bytes[7:0], bytes[15:8], bytes[23:16], bytes[31:24], bytes[39:32], bytes[47:40]};
  endfunction

  logic [15:0] type_at_12, type_at_0;
  logic type_is_vlan, group;
  assign type_at_12 = swap16(view[111:96]);
  assign type_at_0 = swap16(view[15:0]);
  assign type_is_vlan = type_at_0 == 16'h8100 || type_at_0 == 16'h88a8;
  assign group = view[0] || view[48];

  logic begins_pass;
  logic untagged_ip, has_tag;
  assign has_tag = type_at_12 == 16'h8100 || type_at_12 == 16'h88a8;
  assign drop_may_change = drop_unsupported || (drop_not_for_us && state == S_MAC && (untagged_ip || has_tag));
  assign untagged_ip = type_at_12 == 16'h0800 || type_at_12 == 16'h86dd;
  logic is_ip;
  assign is_ip = type_at_0 == 16'h0800 || type_at_0 == 16'h86dd;

  always_comb begin
    take = 5'd0;
    begins_pass = 1'b0;
    drop_not_for_us = 1'b0;
    drop_truncated = 1'b0;
    drop_unsupported = 1'b0;
    out_valid = 1'b0;
    case (state)
      S_MAC:
      if (at_least[14]) begin
        take = 5'd12;
        drop_not_for_us = group;
        if (!group && untagged_ip && at_least[15]) begin
          // Without tags the whole header is taken at once.
          take = ctx_ready ? 5'd14 : 5'd0;
          begins_pass = ctx_ready;
        end
      end else if (tail) begin
        take = count;
        drop_truncated = 1'b1;
      end
      S_TYPE:
      if (at_least[6] || (tail && at_least[2])) begin
        if (type_is_vlan) begin
          if (held.vlans == 2'd2) begin
            drop_unsupported = 1'b1;
          end else if (!at_least[6]) begin
            drop_truncated = 1'b1;
          end else begin
            take = 5'd4;
          end
        end else if (!is_ip) begin
          drop_not_for_us = 1'b1;
        end else if (count == 5'd2) begin
          drop_truncated = 1'b1;
        end else if (ctx_ready) begin
          take = 5'd2;
          begins_pass = 1'b1;
        end
      end
      S_PASS: begin
        out_valid = at_least[8] || tail;
        if (out_valid && out_ready) take = at_least[9] ? 5'd8 : count;
      end
      default: if (at_least[8] || tail) take = at_least[17] ? 5'd16 : count;
    endcase
  end

  always_comb begin
    ctx = held;
    if (state == S_MAC) begin
      ctx = '0;
      ctx.dst_mac = mac_at(view[47:0]);
      ctx.src_mac = mac_at(view[95:48]);
    end
  end
  assign ctx_valid = begins_pass;
  assign ctx_v6 = (state == S_MAC ? type_at_12 : type_at_0) == 16'h86dd;
  assign out_data = view[63:0];
  assign out_bytes = at_least[9] ? 4'd8 : count[3:0];
  assign out_last = tail && !at_least[9];
  assign out_error = error_flag;

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= S_MAC;
      held <= '0;
    end else begin
      case (state)
        S_MAC:
        if ((take == 5'd12 || begins_pass) && at_least[14]) begin
          held.dst_mac <= mac_at(view[47:0]);
          held.src_mac <= mac_at(view[95:48]);
          held.vlans <= 2'd0;
          held.vlan0 <= '0;
          held.vlan1 <= '0;
          state <= begins_pass ? S_PASS : drop_not_for_us ? S_DROP : S_TYPE;
        end
        S_TYPE: begin
          if (take == 5'd4) begin
            if (held.vlans == 2'd0) held.vlan0 <= swap32(view[31:0]);
            else held.vlan1 <= swap32(view[31:0]);
            held.vlans <= held.vlans + 2'd1;
          end
          if (begins_pass) state <= S_PASS;
          if (drop_not_for_us || drop_truncated || drop_unsupported) state <= S_DROP;
        end
        default: if (ends) state <= S_MAC;
      endcase
    end
  end

  logic unused;
  assign unused = error_valid;
endmodule
